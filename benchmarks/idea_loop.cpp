// IDEA's rounds by hand, with the environment: what `lanes` is compared with.
//
//     c++ -O3 -march=native -fno-math-errno -std=c++17 -shared -fPIC -pthread -DSTATES=10 -DARMS=10 idea_loop.cpp
//
// A vector register holds as many runs of one system as it has numbers. Random numbers
// (simulation/draws.py), policy (policies/idea.py, kalman.py) and ties (arrays.first_highest) are
// the package's, so regrets agree up to rounding. What a compiler of single rounds would not know
// is used: all runs share their system, P is symmetric, the products of two entries of an arm never
// change, and one product Γ P serves the bonus and the next covariance. Needs σ > 0.

#include <atomic>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX512F__)
constexpr int BYTES = 64, ROWS = 2;  // ROWS × D sums stay in registers
#elif defined(__AVX__)
constexpr int BYTES = 32, ROWS = 1;
#else
constexpr int BYTES = 16, ROWS = 1;
#endif
constexpr int L = BYTES / 8, D = STATES, K = ARMS;
static_assert(D % ROWS == 0);

typedef double Real __attribute__((vector_size(BYTES)));
typedef int64_t Whole __attribute__((vector_size(BYTES)));
typedef uint32_t Words __attribute__((vector_size(BYTES / 2)));
typedef int32_t Signed __attribute__((vector_size(BYTES / 2)));
typedef uint32_t Pair __attribute__((vector_size(BYTES)));  // of two indices: twice as many words

#define UNROLLED _Pragma("GCC unroll 128")  // what stays in registers
#define ROLLED _Pragma("GCC unroll 1")      // or the code does not fit into its cache
#define INLINE static inline __attribute__((always_inline))

struct System {
  double transition[D][D], process_cov[D][D], process_factor[D][D], start_factor[D][D];
  double arms[K][D], start_mean[D], start_cov[D][D], reward_std;
};

struct Constants {
  double products[D][D][K];  // a_i a_j of every arm, twice off the diagonal
  double columns[D][K];      // the arms' entries
};

struct Key {
  uint32_t low, high;
};

INLINE Real all(double x) { return x - Real{}; }
INLINE Real larger(Real x, Real y) { return x > y ? x : y; }
INLINE Real size_of(Real x) { return (Real)((Whole)x & INT64_MAX); }
#if defined(__AVX512DQ__)
INLINE Real root(Real x) { return (Real)_mm512_sqrt_pd((__m512d)x); }
INLINE bool any(Whole mask) { return _mm512_movepi64_mask((__m512i)mask); }
#elif defined(__AVX__) && !defined(__AVX512F__)
INLINE Real root(Real x) { return (Real)_mm256_sqrt_pd((__m256d)x); }
INLINE bool any(Whole mask) { return _mm256_movemask_pd((__m256d)mask); }
#else
INLINE Real root(Real x) {
  for (int n = 0; n < L; n++) x[n] = std::sqrt(x[n]);
  return x;
}
INLINE bool any(Whole mask) {
  int64_t found = 0;
  for (int n = 0; n < L; n++) found |= mask[n];
  return found;
}
#endif

// ---------------------------------------------------------------- random numbers

template <class W>
INLINE void threefry(W low, W high, W &x, W &y) {
  constexpr int turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const W words[3] = {low, high, low ^ high ^ 0x1BD11BDAu};
  x += words[0], y += words[1];
  UNROLLED for (int group = 0; group < 5; group++) {
    UNROLLED for (int turn = 0; turn < 4; turn++) {
      const int by = turns[group % 2][turn];
      x += y;
      y = ((y << by) | (y >> (32 - by))) ^ x;
    }
    x += words[(group + 1) % 3];
    y += words[(group + 2) % 3] + (uint32_t)(group + 1);
  }
}

constexpr double CENTER[8][2] = {
    {2509.0809287301227, 5226.4952788528546}, {33430.575583588128, 28729.085735721943},
    {67265.770927008701, 39307.895800092711}, {45921.953931549872, 21213.794301586596},
    {13731.693765509461, 5394.1960214247511}, {1971.5909503065514, 687.18700749205791},
    {133.14166789178438, 42.313330701600911}, {3.3871328727963666, 1.0}};
constexpr double MIDDLE[8][2] = {
    {7.7454501427834141e-4, 1.0507500716444168e-9}, {0.022723844989269185, 5.4759380849953449e-4},
    {0.24178072517745061, 0.015198666563616457},    {1.2704582524523684, 0.14810397642748007},
    {3.6478483247632046, 0.6897673349851},          {5.7694972214606914, 1.6763848301838038},
    {4.6303378461565453, 2.0531916266377588},       {1.4234371107496836, 1.0}};
constexpr double TAIL[8][2] = {
    {2.0103343992922881e-7, 2.0442631033899398e-15}, {2.7115555687434876e-5, 1.4215117583164459e-7},
    {0.0012426609473880784, 1.8463183175100547e-5},  {0.026532189526576123, 7.8686913114561326e-4},
    {0.29656057182850489, 0.014875361290850615},     {1.7848265399172913, 0.13692988092273581},
    {5.4637849111641144, 0.59983220655588794},       {6.6579046435011038, 1.0}};

INLINE Real polynomial(const double (&c)[8][2], int which, Real x) {
  Real y = all(c[0][which]);
  UNROLLED for (int n = 1; n < 8; n++) y = y * x + c[n][which];
  return y;
}

INLINE Real log_of(Real x) {  // of a normal number, as fdlibm does
  constexpr int64_t half_root = 0x3FE6A09E00000000, one = 0x3FF0000000000000;
  constexpr double series[7] = {1.479819860511658591e-01, 1.531383769920937332e-01,
                                1.818357216161805012e-01, 2.222219843214978396e-01,
                                2.857142874366239149e-01, 3.999999999940941908e-01,
                                6.666666666666735130e-01};
  const Whole bits = (Whole)x + (one - half_root);
  const Real n = (Real)((bits >> 52) - 1023 + 0x4338000000000000) - 0x1.8p52;
  const Real u = (Real)((bits & 0x000FFFFFFFFFFFFF) + half_root) - 1.0;
  const Real s = u / (u + 2.0), z = s * s, half = u * u * 0.5;
  Real y = all(series[0]);
  UNROLLED for (int i = 1; i < 7; i++) y = y * z + series[i];
  return n * 6.93147180369123816490e-01 -
         ((half - (s * (z * y + half) + n * 1.90821492927058770002e-10)) - u);
}

INLINE Real normal_of(Words x, Words y) {
  const Real high = __builtin_convertvector((Signed)(x >> 6), Real);
  const Real low = __builtin_convertvector((Signed)(y >> 6), Real);
  const Real p = (high * 0x1p26 + low + 0.5) * 0x1p-52, q = p - 0.5;
  const Whole outside = size_of(q) > 0.425;
  const Real r = 0.180625 - q * q;
  Real top = q * polynomial(CENTER, 0, r), bottom = polynomial(CENTER, 1, r);
  if (any(outside)) {
    const Real other = 1.0 - p, s = root(-log_of(p < other ? p : other));
    Real above = polynomial(MIDDLE, 0, s - 1.6), below = polynomial(MIDDLE, 1, s - 1.6);
    const Whole far = s > 5.0;
    if (__builtin_expect(any(far), false)) {
      above = far ? polynomial(TAIL, 0, s - 5.0) : above;
      below = far ? polynomial(TAIL, 1, s - 5.0) : below;
    }
    top = outside ? (q < 0.0 ? -above : above) : top;
    bottom = outside ? below : bottom;
  }
  return top / bottom;
}

INLINE Real normal(Words low, Words high, uint32_t round, Words index) {
  Words x = Words{} + round, y = index;
  threefry(low, high, x, y);
  return normal_of(x, y);
}

INLINE void two_normals(Pair low, Pair high, uint32_t round, uint32_t index, Real *drawn) {
  Pair x = Pair{} + round, y;
  UNROLLED for (int n = 0; n < 2 * L; n++) y[n] = index + n / L;
  threefry(low, high, x, y);
  union {
    Pair both;
    Words each[2];
  } a{x}, b{y};
  drawn[0] = normal_of(a.each[0], b.each[0]);
  drawn[1] = normal_of(a.each[1], b.each[1]);
}

// ---------------------------------------------------------------- one block of runs

struct Block {
  Real cov[D][D], mean[D], z[D], regret;
  Words process[2], reward[2];
};

INLINE void keyed(Key key, uint32_t first, Words *found) {
  Words system = {}, run = {};
  for (int n = 0; n < L; n++) run[n] = first + n;
  threefry(Words{} + key.low, Words{} + key.high, system, run);
  found[0] = system, found[1] = run;
}

void start(Block &b, const System &system, const Key *keys, uint32_t first) {
  Words begin[2];
  keyed(keys[0], first, begin), keyed(keys[1], first, b.process), keyed(keys[2], first, b.reward);
  b.regret = Real{};
  for (int i = 0; i < D; i++) {
    b.mean[i] = b.z[i] = all(system.start_mean[i]);
    for (int j = 0; j < D; j++) b.cov[i][j] = all(system.start_cov[i][j]);
  }
  for (int j = 0; j < D; j++) {
    const Real drawn = normal(begin[0], begin[1], 0, Words{} + (uint32_t)j);
    for (int i = 0; i < D; i++) b.z[i] += system.start_factor[i][j] * drawn;
  }
}

// A tile of ROWS rows of Γ P, times the vector u: dots[i] = Σ_j u_j (Γ P)_ij.
INLINE void across(const double *u, const Real (&tile)[ROWS][D], Real (&dots)[ROWS]) {
  UNROLLED for (int j = 0; j < D; j++)
    UNROLLED for (int i = 0; i < ROWS; i++) dots[i] += u[j] * tile[i][j];
}

// Γ P a and its squared norm for every arm; the upper half of Γ P Γᵀ + Q.
INLINE void moves(const Block &b, const System &system, Real (*moved)[D], Real *norms,
                  Real (*next)[D]) {
  ROLLED for (int first = 0; first < D; first += ROWS) {
    Real tile[ROWS][D] = {};
    ROLLED for (int l = 0; l < D; l++)
      UNROLLED for (int j = 0; j < D; j++)
        UNROLLED for (int i = 0; i < ROWS; i++)
          tile[i][j] += system.transition[first + i][l] * b.cov[l][j];
    ROLLED for (int a = 0; a < K; a++) {
      Real x[ROWS] = {};
      across(system.arms[a], tile, x);
      UNROLLED for (int i = 0; i < ROWS; i++) moved[a][first + i] = x[i], norms[a] += x[i] * x[i];
    }
    ROLLED for (int j = first; j < D; j++) {
      Real x[ROWS];
      UNROLLED for (int i = 0; i < ROWS; i++) x[i] = all(system.process_cov[first + i][j]);
      across(system.transition[j], tile, x);
      UNROLLED for (int i = 0; i < ROWS; i++) next[first + i][j] = x[i];
    }
  }
}

// aᵀPa + σ², ⟨a, ẑ⟩ and ⟨a, z⟩ of every arm.
INLINE void rewards(const Block &b, const System &system, const Constants &constants,
                    Real *variance, Real *expected, Real *values) {
  Real sums[K], others[K] = {};
  UNROLLED for (int a = 0; a < K; a++) sums[a] = all(system.reward_std * system.reward_std);
  ROLLED for (int i = 0; i < D; i++)
    ROLLED for (int j = i; j < D; j++)
      UNROLLED for (int a = 0; a < K; a++) sums[a] += constants.products[i][j][a] * b.cov[i][j];
  UNROLLED for (int a = 0; a < K; a++) variance[a] = sums[a], sums[a] = Real{};
  ROLLED for (int j = 0; j < D; j++)
    UNROLLED for (int a = 0; a < K; a++) {
      sums[a] += constants.columns[j][a] * b.mean[j];
      others[a] += constants.columns[j][a] * b.z[j];
    }
  UNROLLED for (int a = 0; a < K; a++) expected[a] = sums[a], values[a] = others[a];
}

INLINE void add_product(const double (*matrix)[D], const Real *x, Real *result) {
  Real sums[D];
  UNROLLED for (int i = 0; i < D; i++) sums[i] = result[i];
  ROLLED for (int j = 0; j < D; j++)
    UNROLLED for (int i = 0; i < D; i++) sums[i] += matrix[i][j] * x[j];
  UNROLLED for (int i = 0; i < D; i++) result[i] = sums[i];
}

INLINE void play_round(Block &b, const System &system, const Constants &constants, uint32_t round) {
  constexpr double up = 1 + 16 * D * DBL_EPSILON, width = 256 * DBL_EPSILON;
  Real moved[K][D], norms[K] = {}, next[D][D], variance[K], expected[K], values[K];
  UNROLLED for (int i = 0; i < D; i++) b.cov[i][i] *= up;
  moves(b, system, moved, norms, next);
  rewards(b, system, constants, variance, expected, values);

  Real scores[K], sizes[K], top = all(-INFINITY), best = top, size = top;
  ROLLED for (int a = 0; a < K; a++) {
    const Real bonus = root(norms[a] / variance[a]);
    scores[a] = expected[a] + bonus, sizes[a] = size_of(expected[a]) + bonus;
    size = scores[a] > top ? sizes[a] : size;
    top = larger(scores[a], top), best = larger(values[a], best);
  }
  Real m[D] = {}, s = top, mean = top, value = top;
  Whole arm = {};
  ROLLED for (int a = K - 1; a >= 0; a--) {  // the first of those that tie is taken last
    const Whole tied = scores[a] >= top - width * (sizes[a] + size);
    s = tied ? variance[a] : s, mean = tied ? expected[a] : mean;
    value = tied ? values[a] : value, arm = tied ? Whole{} + a : arm;
    UNROLLED for (int i = 0; i < D; i++) m[i] = tied ? moved[a][i] : m[i];
  }
  b.regret += best - value;

  const Words index = __builtin_convertvector(arm, Words);
  const Real noise = normal(b.reward[0], b.reward[1], round, index), share = 1.0 / root(s);
  const Real surprise = (value + system.reward_std * noise - mean) * share;
  Real after[D];
  UNROLLED for (int i = 0; i < D; i++) m[i] *= share, after[i] = m[i] * surprise;
  add_product(system.transition, b.mean, after);
  UNROLLED for (int i = 0; i < D; i++) b.mean[i] = after[i];
  ROLLED for (int i = 0; i < D; i++)
    ROLLED for (int j = i; j < D; j++) b.cov[i][j] = b.cov[j][i] = next[i][j] - m[i] * m[j];
}

INLINE void move(Block &b, const System &system, uint32_t round) {
  union {
    Words each[2];
    Pair both;
  } low{{b.process[0], b.process[0]}}, high{{b.process[1], b.process[1]}};
  Real shocks[D + 1], after[D] = {};
  ROLLED for (int j = 0; j < D; j += 2) two_normals(low.both, high.both, round, j, shocks + j);
  add_product(system.transition, b.z, after);
  add_product(system.process_factor, shocks, after);
  UNROLLED for (int i = 0; i < D; i++) b.z[i] = after[i];
}

}  // namespace

extern "C" int lanes() { return L; }

// The regret of every run; keys are those of the roles start, process and reward.
extern "C" void play(const System *system, const Key *keys, int runs, int rounds, int threads,
                     double *regret) {
  Constants constants;
  for (int a = 0; a < K; a++)
    for (int i = 0; i < D; i++) {
      constants.columns[i][a] = system->arms[a][i];
      for (int j = i; j < D; j++)
        constants.products[i][j][a] = (i == j ? 1 : 2) * system->arms[a][i] * system->arms[a][j];
    }
  std::atomic<int> taken{0};
  auto work = [&] {
    for (int first; (first = L * taken++) < runs;) {
      alignas(64) Block b;
      start(b, *system, keys, first);
      for (int t = 0; t < rounds; t++) {
        play_round(b, *system, constants, t);
        move(b, *system, t);
      }
      for (int n = 0; n < L && first + n < runs; n++) regret[first + n] = b.regret[n];
    }
  };
  std::vector<std::thread> others;
  for (int n = 1; n < threads; n++) others.emplace_back(work);
  work();
  for (auto &other : others) other.join();
}
