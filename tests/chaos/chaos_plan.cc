#include "tests/chaos/chaos_plan.h"

#include <random>

namespace tutti::test {
namespace {

using std::chrono::milliseconds;

class Drawer {
 public:
  explicit Drawer(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15ULL + 1) {
    plan_.seed = seed;
    plan_.chaos = static_cast<Chaos>(seed % kChaosCount);
  }

  ChaosPlan draw() {
    const bool needs_network = plan_.chaos >= Chaos::cut && plan_.chaos <= Chaos::corrupt;
    plan_.nranks = static_cast<int>(2 + below(5));
    plan_.hosts = static_cast<int>(needs_network ? 2 + below(2) : 1 + below(3));
    plan_.hosts = std::min(plan_.hosts, plan_.nranks);
    plan_.victim = static_cast<int>(below(static_cast<std::uint64_t>(plan_.nranks)));
    drawSettings();
    drawChaos();
    say("seed", plan_.seed);
    if (below(3) == 0 && plan_.chaos != Chaos::abort) say("register", 1);
    // Where a fault ends the run, long enough for it to come.
    say("for", heals(plan_.chaos) ? 700 : 120'000);
    return plan_;
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  milliseconds within(std::uint64_t limit) { return milliseconds(below(limit)); }
  void say(const char* name, std::uint64_t value) {
    plan_.arguments.push_back(std::string(name) + "=" + std::to_string(value));
  }

  void set(const char* setting, const std::string& value) {
    plan_.environment.insert_or_assign(setting, value);
  }

  void drawSettings() {
    set("MALLOC_ARENA_MAX", "1");  // so that mappings can be counted
    constexpr const char* kPlans[] = {"ring", "direct", "one_shot", "hierarchical", "/packets"};
    if (below(2) == 0) set("TUTTI_PLAN", kPlans[below(std::size(kPlans))]);
    if (below(3) == 0) {
      set("TUTTI_SLOTS", std::to_string(2 + below(5)));
      set("TUTTI_SLOT_BYTES", std::to_string(std::uint64_t{1024} << below(6)));
    }
    if (below(4) == 0) set("TUTTI_LANES", std::to_string(1 + below(3)));
    if (below(3) == 0) set("TUTTI_LEND_BYTES", "4096");
    if (below(4) == 0) set("TUTTI_PROCESS_VM", "1");
    if (below(3) == 0) set("TUTTI_CHECKSUM", "1");
  }

  void drawFaults(const std::string& faults) {
    set("TUTTI_FAULTS", faults + ";seed=" + std::to_string(plan_.seed));
    set("TUTTI_SLOT_BYTES", "8192");  // a slot has to fit between two cuts
  }

  void act(const char* what) {
    plan_.victim_arguments = {std::string("act=") + what, "at=" + std::to_string(1 + below(60))};
  }

  void drawChaos() {
    const auto text = [](std::uint64_t value) { return std::to_string(value); };
    switch (plan_.chaos) {
      case Chaos::none:
        return;
      case Chaos::compute:
        return say("compute", 5 + below(60));
      case Chaos::pause:
        plan_.moment = within(600);
        plan_.pause = milliseconds(20) + within(1500);
        return;
      case Chaos::cut:
        return drawFaults("cut:every=" + text(30'000 + below(3'000'000)));
      case Chaos::delay:
        return drawFaults("delay:ms=" + text(1 + below(4)));
      case Chaos::stall:
        return drawFaults("stall:every=" + text(200'000 + below(5'000'000)) + ",ms=" + text(20 + below(400)));
      case Chaos::corrupt:
        set("TUTTI_CHECKSUM", "1");
        return drawFaults("corrupt:every=" + text(100'000 + below(3'000'000)));
      case Chaos::kill:
        plan_.moment = within(400);
        return;
      case Chaos::kill_joining:
        plan_.moment = within(80);
        return;
      case Chaos::stop:
        set("TUTTI_TIMEOUT", "4");
        set("TUTTI_STALL_TIMEOUT", "4");
        plan_.moment = within(400);
        return;
      case Chaos::leave:
        return act(below(2) == 0 ? "exit" : "_exit");
      case Chaos::differ:
        act("differ");
        plan_.arguments.push_back("other=" + plan_.victim_arguments[1].substr(3));
        return;
      case Chaos::abort:
        return act("abort");
    }
  }

  std::mt19937_64 random_;
  ChaosPlan plan_;
};

}  // namespace

const char* name(Chaos chaos) {
  constexpr const char* kNames[kChaosCount] = {"none",  "compute", "pause", "cut",          "delay",
                                               "stall", "corrupt", "kill",  "kill joining", "stop",
                                               "leave", "differ",  "abort"};
  return kNames[static_cast<int>(chaos)];
}

std::string ChaosPlan::text() const {
  std::string result = "seed " + std::to_string(seed) + " (" + name(chaos) + "): " + std::to_string(nranks) +
                       " ranks on " + std::to_string(hosts) + " hosts, victim " + std::to_string(victim) +
                       " at " + std::to_string(moment.count()) + " ms, pause " +
                       std::to_string(pause.count()) + " ms;";
  for (const auto& argument : arguments) result += " " + argument;
  for (const auto& argument : victim_arguments) result += " victim's " + argument;
  for (const auto& [name, value] : environment) result.append(" ").append(name).append("=").append(value);
  return result;
}

ChaosPlan drawPlan(std::uint64_t seed) { return Drawer(seed).draw(); }

}  // namespace tutti::test
