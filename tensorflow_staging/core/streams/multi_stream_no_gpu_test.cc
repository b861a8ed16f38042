// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/testing/gpu_streams.h"
#include "tensorflow_staging/core/testing/warnings.h"

namespace tensorflow {
namespace staging {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SessionOptions WithStreams(int count) {
  SessionOptions options;
  UseMultiStream(count, &options);
  // So that the test runs the same way on a machine with a GPU.
  (*options.config.mutable_device_count())["GPU"] = 0;
  return options;
}

TEST(NoGpuTest, StreamsWithoutAGpuAreAWarningOnce) {
  Warnings warnings("use_multi_stream");
  for (const int count : {1, 2, 3}) {
    Session* session = nullptr;
    ASSERT_EQ(NewSession(WithStreams(count), &session), OkStatus());
    const std::unique_ptr<Session> owned(session);
    std::vector<DeviceAttributes> devices;
    ASSERT_EQ(session->ListDevices(&devices), OkStatus());
    EXPECT_EQ(devices.size(), 1u);
  }
  EXPECT_THAT(warnings.Texts(),
              ElementsAre(HasSubstr("use_multi_stream is ON with 2 streams, "
                                    "but the session has no GPU")));
}

TEST(NoGpuTest, MistakesAreErrorsWithoutAGpuToo) {
  Session* session = nullptr;
  EXPECT_TRUE(errors::IsInvalidArgument(NewSession(WithStreams(0), &session)));
  SessionOptions options = WithStreams(2);
  options.config.mutable_gpu_options()
      ->mutable_experimental()
      ->add_virtual_devices();
  EXPECT_TRUE(errors::IsInvalidArgument(NewSession(options, &session)));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
