// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/kernels/saved_record.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/framework/variant_op_registry.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {
namespace {

// A type that can be held by a Variant, but is registered nowhere.
struct Unregistered {
  std::string TypeName() const { return "Unregistered"; }
  void Encode(VariantTensorData* data) const {}
  bool Decode(const VariantTensorData& data) { return true; }
};

// What becomes of `record` in a checkpoint.
bool SaveAndRead(const Variant& record, Variant* read) {
  VariantTensorData data;
  record.Encode(&data);
  VariantTensorDataProto proto;
  data.ToProto(&proto);
  VariantTensorDataProto stored;
  EXPECT_TRUE(stored.ParseFromString(proto.SerializeAsString()));
  *read = stored;
  return DecodeUnaryVariant(read);
}

TEST(SavedRecordTest, ARecordSurvivesACheckpoint) {
  const Tensor text(tstring("ab"));
  const Tensor nothing(DT_FLOAT, TensorShape({0, 3}));
  Variant read;
  ASSERT_TRUE(SaveAndRead(
      SavedRecord{"prefetch", {"hash:0", "next:1"}, {text, nothing}}, &read));
  const SavedRecord* record = read.get<SavedRecord>();
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->stage, "prefetch");
  EXPECT_EQ(record->tensor_names,
            (std::vector<std::string>{"hash:0", "next:1"}));
  ASSERT_EQ(record->tensors.size(), 2);
  EXPECT_EQ(record->tensors[0].scalar<tstring>()(), "ab");
  EXPECT_EQ(record->tensors[1].shape(), TensorShape({0, 3}));
}

// A file is user input.
TEST(SavedRecordTest, MalformedDataIsRefused) {
  const Tensor number(int64_t{1});
  Tensor names(DT_STRING, TensorShape({3}));
  for (const std::vector<Tensor>& tensors : {std::vector<Tensor>{},
                                             {number},
                                             {names},
                                             {names, number},
                                             {Tensor(tstring("prefetch"))}}) {
    VariantTensorData data;
    for (const Tensor& tensor : tensors) *data.add_tensors() = tensor;
    SavedRecord record;
    EXPECT_FALSE(record.Decode(data)) << tensors.size();
  }
}

TEST(SavedRecordTest, SaysWhatCannotBeSaved) {
  EXPECT_EQ(CheckCanBeSaved(Tensor(int64_t{1})), OkStatus());
  Tensor variants(DT_VARIANT, TensorShape({2}));
  EXPECT_EQ(CheckCanBeSaved(variants), OkStatus());
  variants.flat<Variant>()(1) = SavedRecord{"prefetch", {}, {}};
  EXPECT_EQ(CheckCanBeSaved(variants), OkStatus());
  variants.flat<Variant>()(1) = Unregistered();
  const Status status = CheckCanBeSaved(variants);
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "Unregistered")) << status;
  EXPECT_TRUE(errors::IsInvalidArgument(
      CheckCanBeSaved(Tensor(DT_RESOURCE, TensorShape({})))));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
