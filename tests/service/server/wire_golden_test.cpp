// Tests the wire format: bytes that were recorded once stay readable as long as v1 exists. A field
// that changes its number, type or name fails the test. A new field does not, because v1 allows
// additions.

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>

#include "quasi/v1/admin_service.pb.h"
#include "quasi/v1/blob_service.pb.h"
#include "quasi/v1/engine.pb.h"
#include "quasi/v1/job_service.pb.h"
#include "quasi/v1/worker_service.pb.h"

namespace quasi {
namespace {

namespace pb = google::protobuf;

std::string hex(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

std::string bytes_of(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}

void fill(pb::Message& message, int depth);

/// Sets a value that depends on the field's number, so that two exchanged fields of one type are
/// detected.
void fill_field(pb::Message& message, const pb::FieldDescriptor& field, int depth) {
  using Field = pb::FieldDescriptor;
  const pb::Reflection& reflection = *message.GetReflection();
  const int number = field.number();
  const bool list = field.is_repeated();
  const auto put = [&](auto set, auto add, auto value) {
    list ? (reflection.*add)(&message, &field, value) : (reflection.*set)(&message, &field, value);
  };
  switch (field.cpp_type()) {
    case Field::CPPTYPE_STRING:
      list ? reflection.AddString(&message, &field, "text" + std::to_string(number))
           : reflection.SetString(&message, &field, "text" + std::to_string(number));
      break;
    case Field::CPPTYPE_INT32:
      put(&pb::Reflection::SetInt32, &pb::Reflection::AddInt32, std::int32_t{-number});
      break;
    case Field::CPPTYPE_INT64:
      put(&pb::Reflection::SetInt64, &pb::Reflection::AddInt64, std::int64_t{-number});
      break;
    case Field::CPPTYPE_UINT32:
      put(&pb::Reflection::SetUInt32, &pb::Reflection::AddUInt32,
          static_cast<std::uint32_t>(number));
      break;
    case Field::CPPTYPE_UINT64:
      put(&pb::Reflection::SetUInt64, &pb::Reflection::AddUInt64,
          static_cast<std::uint64_t>(number));
      break;
    case Field::CPPTYPE_DOUBLE:
      put(&pb::Reflection::SetDouble, &pb::Reflection::AddDouble, number + 0.5);
      break;
    case Field::CPPTYPE_FLOAT:
      put(&pb::Reflection::SetFloat, &pb::Reflection::AddFloat, static_cast<float>(number) + 0.5F);
      break;
    case Field::CPPTYPE_BOOL:
      put(&pb::Reflection::SetBool, &pb::Reflection::AddBool, true);
      break;
    case Field::CPPTYPE_ENUM: {
      const pb::EnumDescriptor& type = *field.enum_type();
      const int last = type.value(type.value_count() - 1)->number();
      list ? reflection.AddEnumValue(&message, &field, last)
           : reflection.SetEnumValue(&message, &field, last);
      break;
    }
    case Field::CPPTYPE_MESSAGE: {
      pb::Message* part = list ? reflection.AddMessage(&message, &field)
                               : reflection.MutableMessage(&message, &field);
      if (depth > 0) fill(*part, depth - 1);
      break;
    }
  }
}

/// Fills every field; of a oneof, the last one.
void fill(pb::Message& message, int depth) {
  const pb::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) fill_field(message, *type.field(i), depth);
}

void collect(const pb::Descriptor& type, std::vector<const pb::Descriptor*>& types) {
  if (type.options().map_entry()) return;
  types.push_back(&type);
  for (int i = 0; i < type.nested_type_count(); ++i) collect(*type.nested_type(i), types);
}

/// One line of the record: its name, the bytes, and their meaning.
struct Line {
  std::string bytes;
  std::string says;
};

std::map<std::string, Line> examples() {
  std::map<std::string, Line> lines;
  for (const pb::FileDescriptor* file :
       {v1::JobSpec::descriptor()->file(), v1::SubmitJobsRequest::descriptor()->file(),
        v1::RegisterRequest::descriptor()->file(), v1::ReadBlobRequest::descriptor()->file(),
        v1::EngineStart::descriptor()->file(), v1::Principal::descriptor()->file(),
        v1::Pool::descriptor()->file(), v1::Sweep::descriptor()->file(),
        v1::Dependency::descriptor()->file()}) {
    std::vector<const pb::Descriptor*> types;
    for (int i = 0; i < file->message_type_count(); ++i) collect(*file->message_type(i), types);
    for (const pb::Descriptor* type : types) {
      const auto add = [&](const std::string& name, const pb::FieldDescriptor* choice) {
        const std::unique_ptr<pb::Message> message(
            pb::MessageFactory::generated_factory()->GetPrototype(type)->New());
        fill(*message, 2);
        if (choice != nullptr) fill_field(*message, *choice, 2);
        lines[name] = {message->SerializeAsString(), message->ShortDebugString()};
      };
      add(type->full_name(), nullptr);
      for (int i = 0; i < type->field_count(); ++i)
        if (type->field(i)->real_containing_oneof() != nullptr)
          add(type->full_name() + "/" + type->field(i)->name(), type->field(i));
    }
  }
  return lines;
}

TEST(WireGolden, RecordedBytesSayWhatTheySaid) {
  const std::string path = std::string(QUASI_GOLDEN_DIR) + "/wire.txt";
  const auto now = examples();
  if (std::getenv("QUASI_WRITE_GOLDEN") != nullptr) {
    std::ofstream out(path);
    for (const auto& [name, line] : now)
      out << name << '\t' << hex(line.bytes) << '\t' << line.says << '\n';
  }
  std::ifstream in(path);
  ASSERT_TRUE(in) << path;
  int read = 0;
  for (std::string text; std::getline(in, text); ++read) {
    const std::size_t first = text.find('\t');
    const std::size_t second = text.find('\t', first + 1);
    ASSERT_NE(second, std::string::npos) << text;
    const std::string name = text.substr(0, first);
    SCOPED_TRACE(name);
    const pb::Descriptor* type =
        pb::DescriptorPool::generated_pool()->FindMessageTypeByName(name.substr(0, name.find('/')));
    ASSERT_NE(type, nullptr) << "a message of v1 is gone";
    const std::unique_ptr<pb::Message> message(
        pb::MessageFactory::generated_factory()->GetPrototype(type)->New());
    const std::string bytes = bytes_of(text.substr(first + 1, second - first - 1));
    ASSERT_TRUE(message->ParseFromString(bytes));
    EXPECT_EQ(message->ShortDebugString(), text.substr(second + 1));
    EXPECT_EQ(message->SerializeAsString().size(), bytes.size());
  }
  EXPECT_EQ(static_cast<std::size_t>(read), now.size())
      << "a message or a choice is new: record it with QUASI_WRITE_GOLDEN=1";
}

}  // namespace
}  // namespace quasi
