// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_FACTS_RESOURCE_EFFECTS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_FACTS_RESOURCE_EFFECTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/facts/resources.h"

namespace tensorflow {
namespace staging {

// What one use does to a resource; a later effect includes the earlier ones.
enum class ResourceEffect {
  kNone,  // Neither uses nor changes the value: asks for a shape, for example.
  kRead,
  // Gives the resource the value that it begins with, and can do so only once.
  kInitialize,
  // Replaces the value: an initialiser, a restore, or an update.
  kAssign,
  kWrite,  // Changes the value, or may change it.
};

// Returns whether `op` creates a table that can be filled once, and cannot
// change after that.
bool IsFixedTable(absl::string_view op);

// Returns whether all that `op` does with a table is to read it.
bool IsTableRead(absl::string_view op);

// Finds the effects of the uses of resources. Looks into the functions that a
// user calls. An op that it does not know may do anything. Not thread-safe.
class ResourceEffects {
 public:
  // `functions` must outlive this object.
  explicit ResourceEffects(const FunctionLibraryDefinition& functions)
      : functions_(functions) {}

  ResourceEffect Find(const ResourceUse& use);

  // Returns whether `node`, an op with a state or side effect, only reads the
  // resources whose handles it gets. Returns false if it gets none, or calls a
  // function, which may do more than what it does to its arguments.
  bool OnlyReads(const Node& node);

 private:
  // What a function does to its arguments.
  struct OfFunction {
    // By argument; kNone for arguments that are no handles.
    std::vector<ResourceEffect> effects;
    // By argument: whether the function returns the handle, and whether a loop
    // would pass it to another argument.
    std::vector<bool> returned;
    std::vector<bool> moved;
    // Whether the function could be examined. If not, it may do anything.
    bool known = false;
  };

  ResourceEffect FindInFunctions(const ResourceUse& use);
  ResourceEffect OfArgument(const NameAttrList& function, int argument,
                            bool is_loop);
  ResourceEffect WorstOfArguments(const NameAttrList& function);
  const OfFunction& Examine(const NameAttrList& function);
  OfFunction ExamineBody(const Graph& body, int num_arguments);

  const FunctionLibraryDefinition& functions_;
  // By name and attributes. Unknown while the function is being examined, so
  // that a recursive function may do anything.
  std::map<std::string, OfFunction> examined_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_FACTS_RESOURCE_EFFECTS_H_
