// SPDX-License-Identifier: Apache-2.0
//
// How ThreadSanitizer works in each test that contains this file, unless
// TSAN_OPTIONS says otherwise.

// ThreadSanitizer calls these functions by their names before any other code.
extern "C" {

const char* __tsan_default_options() {
  // Both stacks of a lock-order inversion, and more of the past, so that the
  // older stack of a race is seldom lost.
  return "second_deadlock_stack=1:history_size=4";
}

const char* __tsan_default_suppressions() {
  return
      // TensorFlow's libraries are not instrumented. What they write by way of
      // an intercepted function (memcpy, free) would be seen, but not the
      // atomics by which they keep those writes apart.
      "called_from_lib:libtensorflow_cc_base.so.2\n"
      "called_from_lib:libtensorflow_framework.so.2\n"
      // That hides their std::mutex, too, but not the waits in which the C++
      // library gives it up and takes it again. Our code does not use this
      // function.
      "mutex:std::condition_variable::wait\n"
      "deadlock:std::condition_variable::wait\n"
      // A task of a fake GPU that reads or overwrites what another one has
      // written may owe its order to an executor, which counts the inputs of
      // a node that have come, or to the end of a tensor: the libraries count
      // by atomics.
      "race:stream_executor::host::*InOrder\n"
      // Its static mutex: once that exists, the code that is not instrumented
      // checks so without a call that ThreadSanitizer would see.
      "race:tensorflow::mkl_op_registry::IsMklOp\n"
      // The references to a status, and to a tensor's memory, are counted by
      // inline functions and by functions of the libraries. The last one to
      // let go does not seem to come after those in the libraries.
      "race:absl::lts_20230125::Status::Unref\n"
      // Of TensorFlow's inline code, with Status::Unref inlined in it.
      "race:tensorflow::ExecutorBarrier::WhenDone\n"
      "race:tensorflow::Tensor::~Tensor\n"
      "race:tensorflow::Tensor::ValueAndTensorBuffer\n"
      // The same for the references to this, the last of which a handle may hold.
      "race:tensorflow::staging::StepBuffer::~StepBuffer\n"
      // The patched resource makes the state of an iterator, and the libraries
      // use it and let go of it.
      "race:tensorflow::data::IteratorResource::State\n"
      "race:tensorflow::data::ApproximateLatencyEstimator\n";
}

}  // extern "C"
