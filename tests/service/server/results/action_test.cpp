// Tests which parts of a job decide its action, and the bytes of the action's digest.

#include "proto/wire/action/action.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace quasi::wire {
namespace {

v1::JobSpec silicon() {
  v1::JobSpec spec;
  spec.set_name("silicon");
  v1::DeckWork& work = *spec.mutable_thermal();
  work.set_deck("deck");
  v1::Setting& first = *work.add_settings();
  first.set_key("T");
  first.set_value("300");
  v1::Setting& second = *work.add_settings();
  second.set_key("ngrid");
  second.set_value("8,8,8");
  work.add_exports("bte");
  for (const char* slot : {"deck/CONTROL", "deck/FORCE_CONSTANTS_2ND"}) {
    v1::Input& input = *spec.add_inputs();
    input.set_slot(slot);
    input.set_digest(std::string(64, slot[5]));
    input.set_size_bytes(7);
  }
  return spec;
}

using Change = std::function<void(v1::JobSpec&)>;

// Computed outside this program, by Python's hashlib over the encoding that action.hpp states.
TEST(Action, GoldenVectors) {
  EXPECT_EQ(action_digest(silicon()),
            "9b505b9b480bd9004ab499f360e60f997f625416ca20184aca592cdee5902036");
  v1::JobSpec smallest;
  smallest.mutable_gw()->set_deck("deck.toml");
  EXPECT_EQ(action_digest(smallest),
            "50093b3ddf6b100628e9db0dc676a815abb298d7e7b449332410b08a949d74c4");
}

TEST(Action, EveryPartOfTheWorkDecides) {
  const std::vector<Change> changes = {
      [](v1::JobSpec& s) { *s.mutable_gw() = v1::DeckWork(s.thermal()); },
      [](v1::JobSpec& s) { s.mutable_thermal()->set_deck("deck/CONTROL"); },
      [](v1::JobSpec& s) { s.mutable_thermal()->mutable_settings(0)->set_key("T2"); },
      [](v1::JobSpec& s) { s.mutable_thermal()->mutable_settings(0)->set_value("301"); },
      [](v1::JobSpec& s) { s.mutable_thermal()->mutable_settings()->SwapElements(0, 1); },
      [](v1::JobSpec& s) { s.mutable_thermal()->mutable_settings()->RemoveLast(); },
      [](v1::JobSpec& s) { s.mutable_thermal()->clear_exports(); },
      [](v1::JobSpec& s) { s.mutable_thermal()->set_exports(0, "phono3py"); },
      [](v1::JobSpec& s) { s.mutable_inputs(0)->set_slot("deck/POSCAR"); },
      [](v1::JobSpec& s) { s.mutable_inputs(1)->set_digest(std::string(64, '0')); },
      [](v1::JobSpec& s) { s.mutable_inputs()->RemoveLast(); },
      // The same letters in other places.
      [](v1::JobSpec& s) {
        s.mutable_thermal()->mutable_settings(0)->set_key("T3");
        s.mutable_thermal()->mutable_settings(0)->set_value("00");
      },
  };
  std::set<std::string> digests = {action_digest(silicon())};
  for (const Change& change : changes) {
    v1::JobSpec spec = silicon();
    change(spec);
    EXPECT_TRUE(digests.insert(action_digest(spec)).second) << spec.ShortDebugString();
    EXPECT_FALSE(differences(silicon(), spec).empty());
  }
}

TEST(Action, NothingElseDecides) {
  const std::vector<Change> changes = {
      [](v1::JobSpec& s) { s.set_name("other"); },
      [](v1::JobSpec& s) { (*s.mutable_labels())["project"] = "thesis"; },
      [](v1::JobSpec& s) { s.mutable_thermal()->set_device(v1::DEVICE_PREFERENCE_CUDA); },
      [](v1::JobSpec& s) { s.mutable_resources()->set_gpus(4); },
      [](v1::JobSpec& s) { s.mutable_max_runtime()->set_seconds(60); },
      [](v1::JobSpec& s) { s.mutable_retry()->set_max_attempts(1); },
      [](v1::JobSpec& s) { s.mutable_checkpoint()->set_keep(1); },
      [](v1::JobSpec& s) { s.set_priority(-5); },
      [](v1::JobSpec& s) { s.mutable_not_before()->set_seconds(2'000'000'000); },
      [](v1::JobSpec& s) { s.set_visibility(v1::VISIBILITY_TENANT); },
      [](v1::JobSpec& s) { s.set_cache(v1::CACHE_POLICY_REFRESH); },
      [](v1::JobSpec& s) { s.mutable_inputs()->SwapElements(0, 1); },
  };
  for (const Change& change : changes) {
    v1::JobSpec spec = silicon();
    change(spec);
    EXPECT_EQ(action_digest(spec), action_digest(silicon())) << spec.ShortDebugString();
    EXPECT_TRUE(differences(silicon(), spec).empty());
  }
}

TEST(Action, TestWorkHasNone) {
  v1::JobSpec spec;
  spec.mutable_test()->mutable_noop();
  EXPECT_EQ(action_digest(spec), "");
  EXPECT_TRUE(action_fields(spec).empty());
}

TEST(Action, DifferencesNameFieldsAndValues) {
  v1::JobSpec other = silicon();
  other.mutable_thermal()->mutable_settings(0)->set_value("400");
  other.mutable_thermal()->clear_exports();
  const auto found = differences(silicon(), other);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "settings[0].value");
  EXPECT_EQ(found[0].first, "300");
  EXPECT_EQ(found[0].second, "400");
  EXPECT_EQ(found[1].name, "exports[0]");
  EXPECT_EQ(found[1].second, "absent");
}

}  // namespace
}  // namespace quasi::wire
