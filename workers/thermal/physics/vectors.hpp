#pragma once

#include <array>
#include <cmath>

namespace quasi::thermal {

using Vec3 = std::array<double, 3>;
using Mat3 = std::array<Vec3, 3>;  ///< [row][column]
using Index3 = std::array<int, 3>;
using IntMat3 = std::array<Index3, 3>;  ///< [row][column]

inline double dot(const Vec3& a, const Vec3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
inline Vec3 cross(const Vec3& a, const Vec3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
inline double length(const Vec3& a) { return std::sqrt(dot(a, a)); }
inline Vec3 operator+(const Vec3& a, const Vec3& b) {
  return {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
}
inline Vec3 operator-(const Vec3& a, const Vec3& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
inline Vec3 operator*(double s, const Vec3& a) { return {s * a[0], s * a[1], s * a[2]}; }
inline Vec3 operator*(const Mat3& m, const Vec3& a) {
  return {dot(m[0], a), dot(m[1], a), dot(m[2], a)};
}

inline Mat3 transpose(const Mat3& m) {
  return {Vec3{m[0][0], m[1][0], m[2][0]}, Vec3{m[0][1], m[1][1], m[2][1]},
          Vec3{m[0][2], m[1][2], m[2][2]}};
}
inline Mat3 operator*(const Mat3& a, const Mat3& b) {
  const Mat3 columns = transpose(b);
  Mat3 product;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) product[i][j] = dot(a[i], columns[j]);
  return product;
}
inline double determinant(const Mat3& m) { return dot(m[0], cross(m[1], m[2])); }
/// Returns the inverse. The caller has checked that the determinant is not zero.
inline Mat3 inverse(const Mat3& m) {
  const double d = 1.0 / determinant(m);
  return transpose({d * cross(m[1], m[2]), d * cross(m[2], m[0]), d * cross(m[0], m[1])});
}
inline constexpr Mat3 kIdentity{Vec3{1, 0, 0}, Vec3{0, 1, 0}, Vec3{0, 0, 1}};

}  // namespace quasi::thermal
