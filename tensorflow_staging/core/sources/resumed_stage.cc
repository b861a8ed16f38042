// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/resumed_stage.h"

namespace tensorflow {
namespace staging {
namespace {

thread_local core::WeakPtr<SourceReader>* resumed_stage = nullptr;

}  // namespace

core::WeakPtr<SourceReader>* ResumedStage() { return resumed_stage; }

ScopedResumedStage::ScopedResumedStage(core::WeakPtr<SourceReader>* stage)
    : stage_(&resumed_stage, stage) {}

}  // namespace staging
}  // namespace tensorflow
