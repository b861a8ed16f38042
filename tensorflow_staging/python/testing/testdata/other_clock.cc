// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into a program, shifts the system's clock by OTHER_CLOCK_SECONDS
// for everything but the kernel. A wait until a time of this clock then ends as
// much too early or too late as if someone had set the clock during the wait.

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

namespace {

time_t Shift() {
  static const time_t shift = [] {
    const char* seconds = getenv("OTHER_CLOCK_SECONDS");
    return seconds == nullptr ? 0 : atol(seconds);
  }();
  return shift;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) {
  const int result = syscall(SYS_clock_gettime, clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec += Shift();
  return result;
}

int gettimeofday(timeval* time, void*) {
  timespec precise;
  const int result = clock_gettime(CLOCK_REALTIME, &precise);
  time->tv_sec = precise.tv_sec;
  time->tv_usec = precise.tv_nsec / 1000;
  return result;
}

}  // extern "C"
