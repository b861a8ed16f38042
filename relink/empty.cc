// SPDX-License-Identifier: Apache-2.0
// The source of libraries that exist only for their names and dependencies.
