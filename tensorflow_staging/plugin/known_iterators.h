// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_PLUGIN_KNOWN_ITERATORS_H_
#define TENSORFLOW_STAGING_PLUGIN_KNOWN_ITERATORS_H_

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/kernels/data/iterator_ops.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Sets `*iterator` to that of an input. What is known of it (sources/source.h) is
// forgotten when it ends: nothing of ours is in its destructor, and another
// iterator may get its address.
Status LookUpIterator(OpKernelContext* ctx, int input,
                      core::RefCountPtr<data::IteratorResource>* iterator);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PLUGIN_KNOWN_ITERATORS_H_
