// SPDX-License-Identifier: Apache-2.0
//
// Included before a patched file of kernels: the stock copy of the file, in the
// base library, has registered them already, and a kernel that is registered
// twice is an error when it is looked up. The registered factories construct
// the patched kernels, because the overlay exports their constructors.
//
// A build of TensorFlow's whole tree has one copy of each file and does not
// need this.

#ifndef TENSORFLOW_STAGING_RELINK_NO_KERNEL_REGISTRATIONS_H_
#define TENSORFLOW_STAGING_RELINK_NO_KERNEL_REGISTRATIONS_H_

#include "tensorflow/core/framework/op_kernel.h"

#undef REGISTER_KERNEL_BUILDER
#define REGISTER_KERNEL_BUILDER(...) static_assert(true, "registered already")

#endif  // TENSORFLOW_STAGING_RELINK_NO_KERNEL_REGISTRATIONS_H_
