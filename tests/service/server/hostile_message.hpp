#pragma once

// Messages with one hostile field, found by reflection.

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace quasi::server::test {

namespace pb = google::protobuf;

/// A field of a message in a tree of messages.
struct Place {
  pb::Message* message;
  const pb::FieldDescriptor* field;
};

/// Collects all fields of a message and of the messages inside it; of a oneof the field that is
/// set.
inline void collect(pb::Message& message, std::vector<Place>& places) {
  const pb::Descriptor& type = *message.GetDescriptor();
  const pb::Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor* field = type.field(i);
    if (field->real_containing_oneof() != nullptr && !reflection.HasField(message, field)) continue;
    places.push_back({&message, field});
    if (field->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    if (field->is_repeated()) {
      for (int k = 0; k < reflection.FieldSize(message, field); ++k)
        collect(*reflection.MutableRepeatedMessage(&message, field, k), places);
    } else if (reflection.HasField(message, field)) {
      collect(*reflection.MutableMessage(&message, field), places);
    }
  }
}

/// Makes fields of messages hostile: control characters, huge sizes, extreme and missing values,
/// and fields that no descriptor knows.
class Hostile {
 public:
  explicit Hostile(std::uint64_t seed) : random_(seed) {}
  std::uint64_t next() { return random_(); }

  /// Makes one field of the request hostile; returns the name of the field.
  std::string spoil(pb::Message& request) {
    std::vector<Place> places;
    collect(request, places);
    if (places.empty()) return "";
    const Place place = places[random_() % places.size()];
    const pb::Reflection& reflection = *place.message->GetReflection();
    if (random_() % 16 == 0) {
      constexpr int kLargest = 536'870'911;
      const int number = random_() % 2 == 0 ? kLargest : 1'000 + static_cast<int>(random_() % 40);
      reflection.MutableUnknownFields(place.message)->AddLengthDelimited(number, text());
      return "#" + std::to_string(number);
    }
    if (place.field->is_repeated())
      spoil_list(*place.message, *place.field, reflection);
    else
      spoil_one(*place.message, *place.field, reflection);
    return place.field->name();
  }

 private:
  std::string text() {
    switch (random_() % 9) {
      case 0:
        return "";
      case 1:
        return "bell\x07";
      case 2:
        return std::string(300 + random_() % 5'000, 'x');
      case 3:
        return "../../etc/passwd";
      case 4:
        return std::string("nul\0", 4);
      case 5:
        return "j_00000000000000000000000000";
      case 6:
        return "w_zzzz";
      case 7:
        return "two\nlines";
      default:
        return "κ " + std::to_string(random_());
    }
  }
  std::int64_t integer() {
    static constexpr std::int64_t kOnes[]{-1,
                                          0,
                                          1,
                                          17,
                                          99'999,
                                          std::numeric_limits<std::int32_t>::min(),
                                          std::numeric_limits<std::int64_t>::max(),
                                          std::numeric_limits<std::int64_t>::min()};
    return kOnes[random_() % std::size(kOnes)];
  }
  double real() {
    static constexpr double kOnes[]{-1.0, std::numeric_limits<double>::quiet_NaN(),
                                    std::numeric_limits<double>::infinity(), 1e300};
    return kOnes[random_() % std::size(kOnes)];
  }

  void spoil_one(pb::Message& message, const pb::FieldDescriptor& field,
                 const pb::Reflection& reflection) {
    using Field = pb::FieldDescriptor;
    switch (field.cpp_type()) {
      case Field::CPPTYPE_STRING:
        reflection.SetString(&message, &field,
                             field.type() == Field::TYPE_BYTES
                                 ? std::string(random_() % (2U << 20), '\xff')
                                 : text());
        break;
      case Field::CPPTYPE_INT32:
        reflection.SetInt32(&message, &field, static_cast<std::int32_t>(integer()));
        break;
      case Field::CPPTYPE_INT64:
        reflection.SetInt64(&message, &field, integer());
        break;
      case Field::CPPTYPE_UINT32:
        reflection.SetUInt32(&message, &field, static_cast<std::uint32_t>(integer()));
        break;
      case Field::CPPTYPE_UINT64:
        reflection.SetUInt64(&message, &field, static_cast<std::uint64_t>(integer()));
        break;
      case Field::CPPTYPE_DOUBLE:
        reflection.SetDouble(&message, &field, real());
        break;
      case Field::CPPTYPE_FLOAT:
        reflection.SetFloat(&message, &field, static_cast<float>(real()));
        break;
      case Field::CPPTYPE_BOOL:
        reflection.SetBool(&message, &field, random_() % 2 == 0);
        break;
      case Field::CPPTYPE_ENUM:
        reflection.SetEnumValue(&message, &field, static_cast<int>(random_() % 3) * 99);
        break;
      case Field::CPPTYPE_MESSAGE:
        if (random_() % 3 != 0 && field.message_type()->file()->package() == "google.protobuf")
          spoil(*reflection.MutableMessage(&message, &field));
        else
          reflection.ClearField(&message, &field);
        break;
    }
  }

  void spoil_list(pb::Message& message, const pb::FieldDescriptor& field,
                  const pb::Reflection& reflection) {
    if (random_() % 4 == 0) return reflection.ClearField(&message, &field);
    const int copies = random_() % 3 == 0 ? 1'500 : 1;
    for (int i = 0; i < copies; ++i) {
      if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING) {
        reflection.AddString(&message, &field, text());
      } else if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_ENUM) {
        reflection.AddEnumValue(&message, &field, 99);
      } else if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE) {
        pb::Message* added = reflection.AddMessage(&message, &field);
        if (field.is_map()) {
          added->GetReflection()->SetString(added, field.message_type()->map_key(),
                                            text() + std::to_string(i));
          if (const auto* value = field.message_type()->map_value();
              value->cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING)
            added->GetReflection()->SetString(added, value, text());
        }
      }
    }
  }

  std::mt19937_64 random_;
};

}  // namespace quasi::server::test
