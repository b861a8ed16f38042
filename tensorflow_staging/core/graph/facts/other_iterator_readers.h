// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_FACTS_OTHER_ITERATOR_READERS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_FACTS_OTHER_ITERATOR_READERS_H_

#include <map>
#include <vector>

#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow_staging/core/graph/facts/node_filter.h"
#include "tensorflow_staging/core/graph/facts/resources.h"

namespace tensorflow {
namespace staging {

// Finds the nodes of a graph that may read an iterator although they are no
// sources. What they read is not among the records of a stage:
//   * a function, a branch, a loop or a dataset that gets the handle;
//   * a node that gets the handle as a string, such as a remote call;
//   * a handle created from a string, if it promises elements of the types of
//     the iterator. A run may feed it the string of the iterator.
// A string handle alone proves no sharing, since every tf.data.Iterator has
// one.
class OtherIteratorReaders {
 public:
  // `resources`, those of `graph`, must outlive this object. Nodes that
  // `counts` rejects do not count.
  OtherIteratorReaders(const Graph& graph, const Resources& resources,
                       const NodeFilter& counts);

  // Returns such a node for the iterator of `owner`, or null if there is none.
  const Node* Find(const Node& owner) const;

 private:
  const Node* FindUserOfString(const Node& to_string) const;
  const Node* FindHandleFromString(const Node& owner) const;

  const Resources& resources_;
  const NodeFilter counts_;
  // Handles created from strings, by the types of the elements that they
  // promise.
  std::map<std::vector<DataType>, std::vector<const Node*>> from_string_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_FACTS_OTHER_ITERATOR_READERS_H_
