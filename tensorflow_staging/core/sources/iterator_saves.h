// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_ITERATOR_SAVES_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_ITERATOR_SAVES_H_

#include "tensorflow/core/framework/dataset.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Writes, beside the position of an iterator, the records of the stages that
// read it. The stages are held until the session's run ends.
Status SaveRecords(const void* iterator, OpKernelContext* ctx,
                   data::IteratorStateWriter* writer);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_ITERATOR_SAVES_H_
