// How long a block whose threads all poll leaves the processor: two cores carry dozens of such blocks.
#pragma once

namespace tutti::emulator {

/// One per block. First it lets others run, then it naps, longer each time, and the longer the more blocks of
/// this process wait: what they cost together stays bounded.
class Patience {
 public:
  Patience() = default;
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
  ~Patience() { renew(); }

  /// Something went on: the next wait is short again.
  void renew() {
    if (waits_ != 0) stopWaiting();
  }
  void wait();

 private:
  void stopWaiting();

  int waits_ = 0;
};

}  // namespace tutti::emulator
