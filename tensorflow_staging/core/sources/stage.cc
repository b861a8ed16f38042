// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/stage.h"

namespace tensorflow {
namespace staging {
namespace {

thread_local core::WeakPtr<Stage>* resumed_stage = nullptr;

}  // namespace

std::atomic<int> Stage::num_stages_{0};

core::WeakPtr<Stage>* ResumedStage() { return resumed_stage; }

ScopedResumedStage::ScopedResumedStage(core::WeakPtr<Stage>* stage)
    : stage_(&resumed_stage, stage) {}

}  // namespace staging
}  // namespace tensorflow
