// SPDX-License-Identifier: Apache-2.0
// Libraries that exist for their names and dependencies only are linked from
// this.
