// SPDX-License-Identifier: Apache-2.0
//
// A client chooses the configuration of a session, the options of a run and
// what it feeds. Sends what no program of ours would send: the session has to
// return a result or an error, and in time. A crash ends this program; the last
// line of its log has the seed of the request.

#include <gtest/gtest.h>
#include <stdio.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "tensorflow/core/data/serialization_utils.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_tensor_data.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"
#include "tensorflow_staging/core/runner/prefetch_runner.h"
#include "tensorflow_staging/core/smart_stage/runners_node.h"
#include "tensorflow_staging/core/sources/saved_state.h"
#include "tensorflow_staging/core/testing/chance.h"
#include "tensorflow_staging/core/testing/range_source.h"
#include "tensorflow_staging/core/testing/stage_graph.h"
#include "tensorflow_staging/core/testing/stage_runner_options.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int kConfigs = 600;
constexpr int kSessions = 400;
constexpr int kRequests = 8;
// A run that waits is right to do so, for example for a record.
constexpr int kTimeoutMillis = 10;

constexpr const char* kOps[] = {"DeserializeIterator", "StagedNode",
                                "TensorBufferCancel",  "TensorBufferClose",
                                "TensorBufferDiscard", "TensorBufferPut",
                                "TensorBufferResume",  "TensorBufferSize",
                                "TensorBufferStats",   "TensorBufferTake"};

// Most messages need small numbers to be accepted.
int64_t Number(Chance* chance) {
  return chance->Below(2) == 0 ? chance->Below(4) : chance->Int();
}

void AddValue(const google::protobuf::FieldDescriptor& field, Chance* chance,
              google::protobuf::Message* message);

// Sets about half of the fields of a message.
void Fill(Chance* chance, google::protobuf::Message* message) {
  const auto* descriptor = message->GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    if (chance->Below(2) == 0) continue;
    const auto& field = *descriptor->field(i);
    const int values = field.is_repeated() ? chance->Below(3) : 1;
    for (int j = 0; j < values; ++j) AddValue(field, chance, message);
  }
}

void AddValue(const google::protobuf::FieldDescriptor& field, Chance* chance,
              google::protobuf::Message* message) {
  using google::protobuf::FieldDescriptor;
  const auto* reflection = message->GetReflection();
  const bool repeated = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      reflection->SetBool(message, &field, chance->Below(4) > 0);
      break;
    case FieldDescriptor::CPPTYPE_INT32: {
      const int32_t value = static_cast<int32_t>(Number(chance));
      repeated ? reflection->AddInt32(message, &field, value)
               : reflection->SetInt32(message, &field, value);
      break;
    }
    case FieldDescriptor::CPPTYPE_INT64:
      reflection->SetInt64(message, &field, Number(chance));
      break;
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int value = static_cast<int>(Number(chance));
      repeated ? reflection->AddEnumValue(message, &field, value)
               : reflection->SetEnumValue(message, &field, value);
      break;
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      static const std::string* const kTexts[] = {
          new std::string(""), new std::string("prefetch"),
          new std::string("a/b:0"), new std::string("^/../")};
      const std::string& value = *chance->Of(kTexts);
      repeated ? reflection->AddString(message, &field, value)
               : reflection->SetString(message, &field, value);
      break;
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      // RunOptions of TensorFlow itself are not ours to test.
      if (field.is_map() || field.message_type()->full_name() ==
                                RunOptions::descriptor()->full_name()) {
        break;
      }
      Fill(chance, repeated ? reflection->AddMessage(message, &field)
                            : reflection->MutableMessage(message, &field));
      break;
    default:
      break;
  }
}

// Returns the bytes of a message of our fields, sometimes with one changed.
template <typename Fields>
std::string Bytes(Chance* chance) {
  Fields fields;
  Fill(chance, &fields);
  std::string bytes = fields.SerializeAsString();
  if (!bytes.empty() && chance->Below(4) == 0) {
    bytes[chance->Below(bytes.size())] ^= 1 << chance->Below(8);
  }
  return bytes;
}

// Counts results, and fails the test if a whole kind of them is missing.
class Results {
 public:
  ~Results() {
    EXPECT_GT(accepted_, 0);
    EXPECT_GT(refused_, 0);
  }

  // Returns whether the result is no error.
  bool Count(const Status& status) {
    ++(status.ok() ? accepted_ : refused_);
    return status.ok();
  }

 private:
  int accepted_ = 0;
  int refused_ = 0;
};

TEST(HostileClientTest, ConfigurationsGiveAResultOrAnError) {
  Results results;
  GraphDef graph;
  AddRangeSource(/*stop=*/100, &graph);
  StageTestGraph::Add(NodeDefBuilder("sum", "AddV2")
                          .Input("record", 0, DT_INT64)
                          .Input("record", 0, DT_INT64)
                          .Attr("T", DT_INT64),
                      &graph);
  StageTestGraph::Add(NodeDefBuilder("target", "Identity")
                          .Input("sum", 0, DT_INT64)
                          .Attr("T", DT_INT64)
                          .Attr(kTargetAttr, true),
                      &graph);
  for (int seed = 0; seed < kConfigs; ++seed) {
    fprintf(stderr, "configuration %d\n", seed);
    Chance chance(seed);
    SessionOptions options;
    options.config.set_inter_op_parallelism_threads(1);
    GraphOptions* graph_options = options.config.mutable_graph_options();
    const bool parsed =
        options.config.MergeFromString(Bytes<ConfigFields>(&chance)) &&
        graph_options->mutable_optimizer_options()->MergeFromString(
            Bytes<OptimizerFields>(&chance)) &&
        graph_options->mutable_rewrite_options()->MergeFromString(
            Bytes<RewriterFields>(&chance));
    if (!parsed) continue;
    Session* created = nullptr;
    if (!results.Count(NewSession(options, &created))) continue;
    const std::unique_ptr<Session> session(created);
    if (!results.Count(session->Create(graph))) continue;
    RunOptions run;
    run.set_timeout_in_ms(kTimeoutMillis);
    if (!run.MergeFromString(Bytes<RunFields>(&chance))) continue;
    results.Count(session->Run(run, {}, {}, {"initializer"}, nullptr, nullptr));
    std::vector<PrefetchRunnerOptions> runners;
    results.Count(FindRunnersOfSession(session.get(), {}, &runners));
    std::vector<Tensor> outputs;
    results.Count(session->Run(run, {}, {"target:0"}, {}, &outputs, nullptr));
  }
}

// Returns a variant tensor as a client sends it, with other tensors than belong
// there.
Tensor HostileVariant(Chance* chance) {
  TensorProto proto;
  proto.set_dtype(DT_VARIANT);
  const int elements = chance->Below(4);
  proto.mutable_tensor_shape()->add_dim()->set_size(elements);
  for (int i = 0; i < elements; ++i) {
    VariantTensorDataProto* element = proto.add_variant_val();
    element->set_type_name("int");
    element->set_metadata("\x01");
    for (int j = chance->Below(4); j > 0; --j) {
      Tensor tensor(7.0f);
      if (chance->Below(2) == 0) {
        tensor = Tensor(DT_STRING, TensorShape({chance->Below(4)}));
        for (int k = 0; k < tensor.NumElements(); ++k) {
          tensor.flat<tstring>()(k) = k == 0 ? "prefetch" : "record:0";
        }
      }
      tensor.AsProtoTensorContent(element->add_tensors());
    }
  }
  Tensor tensor;
  if (!tensor.FromProto(proto)) return Tensor(DT_VARIANT, TensorShape({}));
  return tensor;
}

// Returns what a client may have in the place of the entry `good` of a saved
// position: sometimes one of its tensors is another, or misses its name.
std::unique_ptr<VariantTensorData> HostileEntry(const VariantTensorData& good,
                                                Chance* chance) {
  auto entry = std::make_unique<VariantTensorData>();
  entry->set_type_name(good.type_name());
  std::string metadata = good.metadata_string();
  if (chance->Below(8) == 0) metadata.back() ^= 1;
  entry->set_metadata(metadata);
  const int changed = chance->Below(4) == 0 ? chance->Below(good.tensors_size())
                                            : good.tensors_size();
  for (int i = 0; i < good.tensors_size(); ++i) {
    const Tensor others[] = {Tensor(Number(chance)),
                             Tensor(tstring("record:0")), Tensor(7.0f),
                             Tensor(DT_INT64, TensorShape({chance->Below(3)}))};
    *entry->add_tensors() = i == changed ? chance->Of(others) : good.tensors(i);
  }
  return entry;
}

// Returns the position `position` of an iterator, with what a client wants to be
// read before the data after it.
Tensor HostilePosition(const Tensor& position, Chance* chance) {
  SavedState state;
  state.initializer = chance->Below(4) == 0 ? "other" : "initializer";
  for (int i = chance->Below(4); i > 0; --i) {
    auto outcome = std::make_shared<Outcome>();
    outcome->is_end = chance->Below(8) == 0;
    if (!outcome->is_end && chance->Below(8) == 0) {
      outcome->status = errors::DataLoss("of the client");
    }
    for (int j = chance->Below(4) == 0 ? chance->Below(3) : 1; j > 0; --j) {
      outcome->element.push_back(chance->Below(4) == 0 ? Tensor(7.0f)
                                                       : Tensor(int64_t{7}));
    }
    state.outcomes.push_back(std::move(outcome));
  }
  data::VariantTensorDataWriter writer;
  TF_CHECK_OK(Write(state, &writer));
  std::vector<std::unique_ptr<VariantTensorData>> written;
  writer.ReleaseData(&written);
  std::vector<Variant> entries;
  const auto good = position.vec<Variant>();
  for (int64_t i = 0; i < good.size(); ++i) {
    const auto* entry = good(i).get<data::IteratorStateVariant>();
    if (!absl::StartsWith(entry->GetData()->metadata_string(), "staging")) {
      entries.push_back(good(i));
    }
  }
  for (const auto& entry : written) {
    data::IteratorStateVariant variant;
    TF_CHECK_OK(
        variant.InitializeFromVariantData(HostileEntry(*entry, chance)));
    entries.emplace_back(std::move(variant));
  }
  const int64_t size = entries.size();
  Tensor tensor(DT_VARIANT, TensorShape({size}));
  for (int64_t i = 0; i < size; ++i) {
    tensor.vec<Variant>()(i) = std::move(entries[i]);
  }
  return tensor;
}

Tensor HostileTensor(DataType type, Chance* chance) {
  if (type == DT_VARIANT) return HostileVariant(chance);
  TensorShape shape;
  for (int i = chance->Below(3); i > 0; --i) shape.AddDim(chance->Below(3));
  Tensor tensor(type, shape);
  for (int64_t i = 0; i < tensor.NumElements(); ++i) {
    if (type == DT_INT32) {
      tensor.flat<int32>()(i) = static_cast<int32>(Number(chance));
    } else if (type == DT_INT64) {
      tensor.flat<int64_t>()(i) = Number(chance);
    } else if (type == DT_STRING) {
      tensor.flat<tstring>()(i) = std::string("\xff\0x", chance->Below(4));
    }
  }
  return tensor;
}

AttrValue HostileAttr(const OpDef::AttrDef& attr, Chance* chance) {
  static constexpr DataType kTypes[] = {DT_INT32, DT_INT64, DT_STRING,
                                        DT_VARIANT};
  const int entries = chance->Below(4);
  AttrValue value;
  AttrValue::ListValue* list = value.mutable_list();
  for (int i = 0; i < entries; ++i) {
    if (attr.type() == "list(type)") list->add_type(chance->Of(kTypes));
    if (attr.type() == "list(int)") list->add_i(Number(chance));
    if (attr.type() == "list(string)") list->add_s("record:0");
    if (attr.type() == "list(shape)") {
      list->add_shape()->add_dim()->set_size(Number(chance));
    }
  }
  if (attr.type() == "int") value.set_i(Number(chance));
  if (attr.type() == "string") {
    value.set_s(chance->Below(4) == 0 ? "a\xff:/" : "prefetch");
  }
  return value;
}

// Builds a node of `op` with any attributes, over placeholders that it feeds,
// and over the session's iterator, which has the position `position`.
NodeDef HostileNode(const std::string& name, const OpDef& op,
                    const Tensor& position, Chance* chance, GraphDef* graph,
                    std::vector<std::pair<std::string, Tensor>>* feeds) {
  NodeDef node;
  node.set_name(name);
  node.set_op(op.name());
  for (const OpDef::AttrDef& attr : op.attr()) {
    if (!attr.has_default_value() || chance->Below(4) > 0) {
      (*node.mutable_attr())[attr.name()] = HostileAttr(attr, chance);
    }
  }
  const auto add_input = [&](DataType type) {
    if (type == DT_RESOURCE) {
      node.add_input("iterator");
      return;
    }
    const std::string input = absl::StrCat(name, "_input_", node.input_size());
    StageTestGraph::Add(
        NodeDefBuilder(input, "Placeholder").Attr("dtype", type), graph);
    feeds->emplace_back(input, op.name() == "DeserializeIterator"
                                   ? HostilePosition(position, chance)
                                   : HostileTensor(type, chance));
    node.add_input(input);
  };
  for (const OpDef::ArgDef& arg : op.input_arg()) {
    if (arg.type_list_attr().empty()) {
      add_input(arg.type());
      continue;
    }
    for (int type : node.attr().at(arg.type_list_attr()).list().type()) {
      add_input(static_cast<DataType>(type));
    }
  }
  return node;
}

// A session whose stage reads an iterator.
class StagedSession {
 public:
  StagedSession() {
    SessionOptions options;
    options.config.set_inter_op_parallelism_threads(2);
    // The graph is extended, as in a Python session.
    options.config.mutable_experimental()
        ->set_disable_optimize_for_static_graph(true);
    session_.reset(NewSession(options));
    GraphDef graph;
    AddRangeSource(/*stop=*/100, &graph);
    StageTestGraph::Add(NodeDefBuilder("position", "SerializeIterator")
                            .Input("iterator", 0, DT_RESOURCE),
                        &graph);
    stage_.AddTo(&graph, "record");
    TF_CHECK_OK(session_->Create(graph));
    TF_CHECK_OK(session_->Run({}, {}, {"initializer"}, nullptr));
    PrefetchRunnerOptions options_of_runner = RunnerOptionsOf(stage_);
    options_of_runner.add_fetch_ops(stage_.Node(kPutOp));
    TF_CHECK_OK(PrefetchRunner::Create(session_, options_of_runner, &runner_));
    TF_CHECK_OK(runner_->Start());
  }

  Tensor Position() {
    std::vector<Tensor> outputs;
    TF_CHECK_OK(session_->Run({}, {"position"}, {}, &outputs));
    return outputs[0];
  }

  Status Take(const RunOptions& run) {
    std::vector<Tensor> outputs;
    return session_->Run(run, {}, {stage_.Node(kTakeOp)}, {}, &outputs,
                         nullptr);
  }

  Session* get() { return session_.get(); }

 private:
  const StageTestGraph stage_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<PrefetchRunner> runner_;
};

TEST(HostileClientTest, InputsAndAttributesGiveAResultOrAnError) {
  Results results;
  for (int seed = 0; seed < kSessions; ++seed) {
    Chance chance(seed);
    StagedSession staged;
    Session* const session = staged.get();
    const Tensor position = staged.Position();
    // In one session, the requests meet in the same buffers.
    for (int i = 0; i < kRequests; ++i) {
      fprintf(stderr, "session %d, request %d\n", seed, i);
      const OpDef* op = nullptr;
      ASSERT_EQ(OpRegistry::Global()->LookUpOpDef(chance.Of(kOps), &op),
                OkStatus());
      GraphDef graph;
      std::vector<std::pair<std::string, Tensor>> feeds;
      const std::string name = absl::StrCat("hostile_", i);
      *graph.add_node() =
          HostileNode(name, *op, position, &chance, &graph, &feeds);
      if (!results.Count(session->Extend(graph))) continue;
      RunOptions run;
      run.set_timeout_in_ms(kTimeoutMillis);
      std::vector<std::string> fetches;
      if (op->output_arg_size() > 0 && chance.Below(2) == 0) {
        fetches.push_back(absl::StrCat(name, ":0"));
      }
      std::vector<Tensor> outputs;
      results.Count(
          session->Run(run, feeds, fetches, {name}, &outputs, nullptr));
      results.Count(staged.Take(run));
    }
  }
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
