// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/testing/histories/history.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/sources/save_moment.h"
#include "tensorflow_staging/core/testing/histories/program.h"
#include "tensorflow_staging/core/testing/histories/staged_program.h"
#include "tensorflow_staging/core/testing/scheduled/random.h"
#include "tensorflow_staging/core/testing/scheduled/scheduler.h"

namespace tensorflow {
namespace staging {
namespace {

using scheduled::Random;
using scheduled::Scheduler;

using PlainPrograms = std::vector<PlainProgram>;
// What an operation does to the program without stages: the states in which it
// may be afterwards. None if what the operation has yielded is wrong.
using Effect = std::function<PlainPrograms(const PlainProgram&)>;
using Effects = std::vector<Effect>;

void AddNew(const PlainProgram& state, PlainPrograms* states) {
  if (!absl::c_linear_search(*states, state)) states->push_back(state);
}

// Adds the states after `one` and `other` to `*states`: each in its order, but in
// any order among each other.
void Merge(const PlainProgram& state, const Effects& one, size_t in_one,
           const Effects& other, size_t in_other, PlainPrograms* states) {
  if (in_one == one.size() && in_other == other.size()) AddNew(state, states);
  if (in_one < one.size()) {
    for (const PlainProgram& next : one[in_one](state)) {
      Merge(next, one, in_one + 1, other, in_other, states);
    }
  }
  if (in_other < other.size()) {
    for (const PlainProgram& next : other[in_other](state)) {
      Merge(next, one, in_one, other, in_other + 1, states);
    }
  }
}

// One thread of the program, or two, do what they do in a history.
class History {
 public:
  History(Program program, Random random, bool is_traced)
      : program_(std::move(program)),
        random_(random),
        is_traced_(is_traced),
        staged_(program_),
        states_(1) {
    states_[0].sources.resize(program_.num_sources);
  }

  // Returns what was wrong.
  std::string Run() {
    Trace(program_.ToString());
    if (program_.any_order) {
      UseEachOnce();
    } else {
      Compare();
    }
    if (staged_.is_running()) staged_.Stop(&random_);
    if (failure_.empty()) failure_ = staged_.Check();
    return failure_;
  }

 private:
  void Trace(const std::string& text) {
    if (is_traced_) std::printf("%s\n", text.c_str());
  }

  // Steps may find that nothing has been initialised.
  void Compare() {
    if (random_.OneIn(5)) {
      staged_.Start();
      for (int64_t i = random_.Below(3); i > 0; --i) Apply(Step());
    }
    Apply(Initialise(AllSources()));
    if (!staged_.is_running()) staged_.Start();
    for (int64_t i = random_.Between(5, 40); i > 0 && failure_.empty(); --i) {
      const int64_t chance = random_.Below(20);
      if (chance < 8) {
        StepOnce();
      } else if (chance < 12) {
        Together();
      } else if (chance < 13) {
        CancelStep();
      } else if (chance < 15 && staged_.is_running()) {
        Trace("stop");
        staged_.Stop(&random_);
      } else if (chance < 17) {
        ChangeMode();
      } else {
        Apply(Operation(/*may_step=*/true));
      }
    }
  }

  void StepOnce() {
    if (!staged_.is_running() && random_.Below(4) > 0) {
      Trace("start");
      staged_.Start();
    }
    Apply(Step());
  }

  // An operation beside steps.
  Effects Operation(bool may_step) {
    switch (random_.Below(5)) {
      case 0:
        return Initialise(SomeSources());
      case 1:
        return Save(may_step);
      case 2:
        return Restore();
      case 3:
        return ReadBeside();
      default:
        Trace("discard");
        staged_.Discard();
        return {};
    }
  }

  // Two threads of the program, one of which steps.
  void Together() {
    if (!staged_.is_running()) staged_.Start();
    Trace("together {");
    Effects other;
    Effects steps;
    {
      const Thread thread(
          "other", [this, &other] { other = Operation(/*may_step=*/false); });
      for (int64_t i = random_.Between(1, 3); i > 0; --i) {
        for (Effect& effect : Step()) steps.push_back(std::move(effect));
      }
    }
    Trace("}");
    Become([&](const PlainProgram& state, PlainPrograms* states) {
      Merge(state, steps, 0, other, 0, states);
    });
  }

  void CancelStep() {
    CancellationManager cancellation;
    const Thread thread("canceller", [this, &cancellation] {
      for (int64_t i = random_.Below(100); i > 0; --i) {
        Scheduler::Current()->Point();
      }
      cancellation.StartCancel();
    });
    Apply(Step(&cancellation));
  }

  void ChangeMode() {
    const int64_t mode = random_.Below(1000);
    Trace(absl::StrCat("mode ", mode));
    staged_.SetMode(mode);
    staged_.Discard();
    Apply({[mode](PlainProgram state) -> PlainPrograms {
      state.mode = mode;
      return {state};
    }});
  }

  Effects Step(CancellationManager* cancellation = nullptr) {
    const Result got = staged_.Step(cancellation);
    Trace(absl::StrCat("step: ", got.ToString()));
    const bool may_be_cancelled =
        cancellation != nullptr || !staged_.is_running();
    // A stage that does not run gives the same end to all steps.
    const bool may_be_same =
        !staged_.is_running() && !got.status.ok() && last_step_ == got;
    last_step_ = got;
    return {[=](const PlainProgram& state) -> PlainPrograms {
      PlainPrograms states;
      if (may_be_same ||
          (may_be_cancelled && errors::IsCancelled(got.status))) {
        states.push_back(state);
      }
      PlainProgram next = state;
      if (next.Step(program_) == got) AddNew(next, &states);
      return states;
    }};
  }

  Effects Initialise(const std::vector<int64_t>& sources) {
    Effects effects;
    const int64_t base = random_.Below(1000);
    const int64_t length = random_.Between(1, 12);
    for (int64_t source : sources) {
      PlainProgram::Source fresh;
      fresh.is_initialised = true;
      fresh.data = {source, base, length, program_.data_has_errors};
      Trace(
          absl::StrCat("initialise ", source, ": ", base, ", length ", length));
      staged_.Change(source, {fresh});
      effects.push_back([=](PlainProgram state) -> PlainPrograms {
        state.sources[source] = fresh;
        return {state};
      });
      Pause();
    }
    return effects;
  }

  Effects Save(bool may_step) {
    Effects effects = {[](PlainProgram state) -> PlainPrograms {
      state.saved.push_back(state.sources);
      return {state};
    }};
    std::vector<Iterator::Saved> saved(program_.num_sources);
    const core::RefCountPtr<SaveMoment> moment(new SaveMoment);
    bool is_first = true;
    for (int64_t source : Shuffled(AllSources())) {
      // Another thread's step, which counts as after the save.
      if (may_step && !std::exchange(is_first, false) &&
          random_.Below(10) < 3 && staged_.is_running()) {
        for (Effect& effect : Step()) effects.push_back(std::move(effect));
      }
      saved[source] = staged_.Save(source, *moment);
      Trace(absl::StrCat("save ", source, ": ", saved[source].outcomes.size(),
                         " elements, position ",
                         saved[source].position.position));
      Pause();
    }
    saved_.push_back(std::move(saved));
    return effects;
  }

  Effects Restore() {
    if (saved_.empty()) return {};
    const size_t which = random_.Below(saved_.size());
    Effects effects;
    for (int64_t source : Shuffled(AllSources())) {
      Trace(absl::StrCat("restore ", source, " of save ", which));
      staged_.Change(source, saved_[which][source]);
      effects.push_back([=](PlainProgram state) -> PlainPrograms {
        state.sources[source] = state.saved[which][source];
        return {state};
      });
      Pause();
    }
    return effects;
  }

  Effects ReadBeside() {
    const int64_t source = random_.Below(program_.num_sources);
    const Result got = staged_.ReadBeside(source);
    last_beside_ = got;
    Trace(absl::StrCat("beside ", source, ": ", got.ToString()));
    return {[=](PlainProgram state) -> PlainPrograms {
      if (state.ReadBeside(source) == got) return {state};
      return {};
    }};
  }

  // In any order, but each element comes once.
  void UseEachOnce() {
    const int64_t length = random_.Between(5, 30);
    PlainProgram::Source fresh;
    fresh.is_initialised = true;
    fresh.data = {0, 0, length};
    staged_.Change(0, {fresh});
    Values used;
    std::vector<std::pair<Iterator::Saved, Values>> saved;
    while (failure_.empty()) {
      if (!staged_.is_running()) staged_.Start();
      const Result got = staged_.Step(nullptr);
      Trace(absl::StrCat("step: ", got.ToString()));
      if (errors::IsOutOfRange(got.status)) break;
      if (!got.status.ok()) failure_ = got.ToString();
      if (!failure_.empty()) return;
      used.push_back(got.values.back());
      const int64_t chance = random_.Below(40);
      if (chance < 4) {
        const core::RefCountPtr<SaveMoment> moment(new SaveMoment);
        saved.emplace_back(staged_.Save(0, *moment), used);
        Trace("save");
      } else if (chance < 6 && !saved.empty()) {
        staged_.Change(0, saved.back().first);
        used = saved.back().second;
        saved.pop_back();
        Trace("restore");
      } else if (chance < 8) {
        staged_.Discard();
        Trace("discard");
      } else if (chance < 10) {
        const Result beside = staged_.ReadBeside(0);
        if (beside.status.ok()) used.push_back(beside.values.back());
        Trace(absl::StrCat("beside: ", beside.ToString()));
      } else if (chance < 14) {
        staged_.Stop(&random_);
        Trace("stop");
      }
    }
    absl::c_sort(used);
    bool is_once = static_cast<int64_t>(used.size()) == length;
    for (int64_t i = 0; is_once && i < length; ++i) is_once = used[i] == i;
    if (!is_once) {
      failure_ = absl::StrCat("Not each of ", length,
                              " elements once: ", absl::StrJoin(used, " "));
    }
  }

  // Other threads may go on meanwhile.
  void Pause() {
    for (int64_t i = random_.Below(30); i > 0; --i) {
      Scheduler::Current()->Point();
    }
  }

  void Apply(const Effects& effects) {
    Become([&](const PlainProgram& state, PlainPrograms* states) {
      Merge(state, effects, 0, {}, 0, states);
    });
  }

  void Become(const std::function<void(const PlainProgram&, PlainPrograms*)>&
                  add_next) {
    if (!failure_.empty()) return;
    PlainPrograms next;
    for (const PlainProgram& state : states_) add_next(state, &next);
    if (next.empty()) {
      failure_ = absl::StrCat("An operation is wrong. The last ones yielded ",
                              last_step_.ToString(), " or, beside steps, ",
                              last_beside_.ToString(),
                              ". The next step yields one of:");
      for (PlainProgram& state : states_) {
        absl::StrAppend(&failure_, "\n  ", state.Step(program_).ToString());
      }
      return;
    }
    states_ = std::move(next);
  }

  std::vector<int64_t> AllSources() {
    std::vector<int64_t> sources(program_.num_sources);
    for (int64_t i = 0; i < program_.num_sources; ++i) sources[i] = i;
    return sources;
  }
  std::vector<int64_t> SomeSources() {
    std::vector<int64_t> sources = Shuffled(AllSources());
    sources.resize(random_.Between(1, sources.size()));
    return sources;
  }
  std::vector<int64_t> Shuffled(std::vector<int64_t> sources) {
    for (size_t i = 1; i < sources.size(); ++i) {
      std::swap(sources[i], sources[random_.Below(i + 1)]);
    }
    return sources;
  }

  const Program program_;
  Random random_;
  const bool is_traced_;
  StagedProgram staged_;
  std::vector<std::vector<Iterator::Saved>> saved_;
  Result last_step_;
  Result last_beside_;
  // In which the program without stages may be.
  PlainPrograms states_;
  std::string failure_;
};

}  // namespace

HistoryOutcome RunHistory(uint64_t seed, bool is_traced) {
  Random random(seed);
  const Program program = seed % 10 == 9 ? Program::ChooseInAnyOrder(&random)
                                         : Program::Choose(&random);
  Scheduler scheduler(random.Next());
  HistoryOutcome outcome;
  std::string wrong;
  outcome.failure =
      scheduler.Run([&] { wrong = History(program, random, is_traced).Run(); });
  if (outcome.failure.empty()) outcome.failure = wrong;
  outcome.fingerprint = scheduler.fingerprint();
  outcome.scheduling_steps = scheduler.steps();
  return outcome;
}

}  // namespace staging
}  // namespace tensorflow
