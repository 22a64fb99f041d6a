#pragma once

#include "workers/backend/host_device.hpp"

namespace quasi {

/// Complex number with the layout of std::complex<T>, cuDoubleComplex and FFTW's: {re, im}. It
/// exists because std::complex has no device code. Arrays may be cast between these types.
template <typename T>
struct Complex {
  T re = 0;
  T im = 0;

  QUASI_HD Complex& operator+=(Complex b) {
    re += b.re;
    im += b.im;
    return *this;
  }
  QUASI_HD Complex& operator-=(Complex b) {
    re -= b.re;
    im -= b.im;
    return *this;
  }
  QUASI_HD Complex& operator*=(T s) {
    re *= s;
    im *= s;
    return *this;
  }
};

template <typename T>
QUASI_HD inline Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <typename T>
QUASI_HD inline Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <typename T>
QUASI_HD inline Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <typename T>
QUASI_HD inline Complex<T> operator*(T s, Complex<T> a) {
  return {s * a.re, s * a.im};
}
/// Returns the complex conjugate.
template <typename T>
QUASI_HD inline Complex<T> conj(Complex<T> a) {
  return {a.re, -a.im};
}
/// Returns |a|², like std::norm.
template <typename T>
QUASI_HD inline T norm(Complex<T> a) {
  return a.re * a.re + a.im * a.im;
}

}  // namespace quasi
