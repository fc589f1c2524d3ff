// A Mamba block between its in_proj and its end, in float32, where nothing in it is rounded; native.py compiles and calls it.
//
//   x = silu(conv(x)),  [r; B; C] = x_proj x,  delta = softplus(dt_proj r + bias)
//   h[t] = exp(delta[t] A) h[t-1] + delta[t] x[t] B[t],   out = out_proj ((<h[t], C[t]> + D x) silu(z))
//
// An exact circuit meets silu, softplus and exp only where they are 0, 1, the argument or its rectifier, bit for bit. Where
// an argument is anything else, this returns 0 and PyTorch's own functions compute the block. So nothing here approximates.
//
// Left out is only what adds a zero to finite numbers: weights that are 0, channels that no other weight reads, columns of a
// tile that are not read. All bounds that make the numbers finite are checked; beyond them, this returns 0 too.
//
// Time runs along vectors up to the scan, and sixteen channels do within it.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace {

constexpr long LANES = 16;
constexpr long TILE = 64;            // steps
constexpr float MOST = 0x1p120f;     // no number and no bound may be larger
constexpr float HIGH = 32.0f;        // from here up silu(v) = softplus(v) = v
constexpr float LOW = -104.0f;       // from here down silu(v) = -0, softplus(v) = 0, exp(v) = 0
constexpr float NO_CHANGE = -0x1p-25f;  // from here up to 0, exp(v) = 1

typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef float row[TILE];
typedef int bits __attribute__((may_alias));  // of a float

struct Entry {
    long from, to;
    float weight;
};

// The entries of a matrix (to, from) that are not 0, in the order of its rows.
std::vector<Entry> entries(const float* matrix, long rows, long columns) {
    std::vector<Entry> found;
    for (long i = 0; i < rows; ++i)
        for (long j = 0; j < columns; ++j)
            if (matrix[i * columns + j] != 0) found.push_back({j, i, matrix[i * columns + j]});
    return found;
}

// The largest |v|, or infinity or no number where one is.
float largest(const float* v, long count) {
    const bits* const w = (const bits*)v;
    bits most = 0;  // magnitudes of floats are in the order of their bits, those of no numbers last
    for (long i = 0; i < count; ++i) most = std::max(most, w[i] & 0x7fffffff);
    float found;
    std::memcpy(&found, &most, sizeof found);
    return found;
}

// Raise a bound; what is no number stays.
void lift(float& bound, float found) { bound = found <= bound || bound != bound ? bound : found; }

float most_in_a_row(const float* matrix, long rows, long columns) {
    float most = 0;
    for (long i = 0; i < rows; ++i) {
        float sum = 0;
        for (long j = 0; j < columns; ++j) sum += std::fabs(matrix[i * columns + j]);
        most = std::max(most, sum);
    }
    return most;
}

// These rows of the product; no other row of the matrix has an entry.
void multiply(row* out, const std::vector<long>& rows, const std::vector<Entry>& matrix, const row* in) {
    for (long i : rows) std::memset(out[i], 0, sizeof(row));
    for (const Entry& e : matrix)
        for (long t = 0; t < TILE; ++t) out[e.to][t] += e.weight * in[e.from][t];
}

// In place; false where silu rounds.
bool silu(float* v) {
    int rounds = 0;
    for (long t = 0; t < TILE; ++t) {
        const float a = v[t];
        rounds |= !((a >= HIGH) | (a <= LOW) | (a == 0));
        v[t] = a <= LOW ? -0.0f : a;
    }
    return !rounds;
}

// v + bias, in place; false where softplus rounds.
bool softplus(float* v, float bias) {
    int rounds = 0;
    for (long t = 0; t < TILE; ++t) {
        const float a = v[t] + bias;
        rounds |= !((a >= HIGH) | (a <= LOW));
        v[t] = a <= LOW ? 0.0f : a;
    }
    return !rounds;
}

struct Block {
    const float *conv, *conv_bias, *x_proj, *dt_proj, *dt_bias, *A, *D, *out_proj, *out_bias;
    long channels, n, rank, width, taps;
};

class Inner {
  public:
    explicit Inner(const Block& block)
        : b(block),
          x_proj(entries(b.x_proj, b.rank + 2 * b.n, b.channels)),
          dt_proj(entries(b.dt_proj, b.channels, b.rank)),
          out_proj(entries(b.out_proj, b.width, b.channels)),
          live(b.channels),
          shows(b.channels) {
        for (const Entry& e : x_proj) live[e.from] = 1;
        for (const Entry& e : out_proj) live[e.from] = shows[e.from] = 1;
        for (long c = 0; c < b.channels; ++c)
            if (shows[c]) shown.push_back(c);
        // dt_proj of other channels is not needed
        dt_proj.erase(std::remove_if(dt_proj.begin(), dt_proj.end(), [&](const Entry& e) { return !shows[e.to]; }),
                      dt_proj.end());
        groups = (shown.size() + LANES - 1) / LANES;
        a.resize(groups * b.n * LANES);
        for (size_t j = 0; j < shown.size(); ++j)
            for (long i = 0; i < b.n; ++i) a[(j / LANES * b.n + i) * LANES + j % LANES] = b.A[shown[j] * b.n + i];
        h.resize(a.size());
        x.resize(b.channels * TILE), delta.resize(b.channels * TILE), y.resize(b.channels * TILE);
        mixed.resize((b.rank + 2 * b.n) * TILE), out.resize(b.width * TILE);
        for (long i = 0; i < b.rank + 2 * b.n; ++i) mixes.push_back(i);
        std::vector<char> gets(b.width, b.out_bias != nullptr);
        for (const Entry& e : out_proj) gets[e.to] = 1;
        for (long i = 0; i < b.width; ++i)
            if (gets[i]) written.push_back(i);
    }

    // Whether no weight is so large, or no number, that a zero times it could be no number.
    bool tame() const {
        const long n = b.n, d = b.channels;
        for (long i = 0; i < d * n; ++i)
            if (!(b.A[i] <= 0)) return false;
        const float weights[] = {largest(b.conv, d * b.taps), largest(b.x_proj, (b.rank + 2 * n) * d),
                                 largest(b.dt_proj, d * b.rank), largest(b.dt_bias, d),
                                 largest(b.A, d * n), largest(b.D, d), largest(b.out_proj, b.width * d),
                                 b.conv_bias ? largest(b.conv_bias, d) : 0, b.out_bias ? largest(b.out_bias, b.width) : 0};
        for (float weight : weights)
            if (!(weight <= MOST)) return false;
        return true;
    }

    // Look at the channels that no other weight reads, of all sequences: they are left out.
    void pass_over(const float* xz, long batch_stride, long stride, long batch, long length) {
        for (long c = 0; c < 2 * b.channels; ++c) {
            const bool is_gate = c >= b.channels;
            if (is_gate ? shows[c - b.channels] : live[c]) continue;
            float most = 0;
            for (long i = 0; i < batch; ++i) lift(most, largest(xz + i * batch_stride + c * stride, length));
            lift(is_gate ? idle_z : idle_x, most);
        }
    }

    // One sequence: xz (2 channels, length) with a stride between channels, result (length, width), all 0 before.
    bool run(const float* xz, long stride, long length, float* result) {
        std::fill(h.begin(), h.end(), 0.0f);
        for (long start = 0; start < length; start += TILE) {
            const long steps = std::min(TILE, length - start);
            if (!tile(xz, stride, start, steps)) return false;
            for (long i : written) {
                const float bias = b.out_bias ? b.out_bias[i] : 0;
                for (long t = 0; t < steps; ++t) result[(start + t) * b.width + i] = out[i * TILE + t] + bias;
            }
        }
        return finite(length);
    }

  private:
    const Block& b;
    std::vector<Entry> x_proj, dt_proj, out_proj;
    std::vector<char> live, shows;  // channels that a weight reads; those that out_proj reads
    std::vector<long> shown, mixes, written;
    long groups;
    std::vector<float> a, h;  // (groups, n, 16)
    std::vector<float> x, delta, y, mixed, out;
    float idle_x = 0, idle_z = 0, live_x = 0, driven = 0, columns = 0, most = 0;  // largest magnitudes so far

    bool tile(const float* xz, long stride, long start, long steps) {
        for (long c = 0; c < b.channels; ++c)
            if (live[c] && !convolved(c, xz + c * stride + start, start, steps)) return false;
        multiply((row*)mixed.data(), mixes, x_proj, (const row*)x.data());
        multiply((row*)delta.data(), shown, dt_proj, (const row*)mixed.data());
        lift(columns, largest(mixed.data(), (b.rank + 2 * b.n) * TILE));
        for (long c : shown)
            if (!softplus(&delta[c * TILE], b.dt_bias[c])) return false;
        for (long g = 0; g < groups; ++g)
            if (!scanned(g)) return false;
        for (long c : shown) {
            row z = {};
            std::memcpy(z, xz + (b.channels + c) * stride + start, steps * sizeof(float));
            if (!silu(z)) return false;
            for (long t = 0; t < TILE; ++t) y[c * TILE + t] = (y[c * TILE + t] + b.D[c] * x[c * TILE + t]) * z[t];
            lift(most, largest(&y[c * TILE], TILE));
            lift(most, largest(z, TILE));
        }
        multiply((row*)out.data(), written, out_proj, (const row*)y.data());
        return true;
    }

    // x of a channel; beyond the last step it stays as it was there.
    bool convolved(long c, const float* from, long start, long steps) {
        row& v = *(row*)&x[c * TILE];
        const float bias = b.conv_bias ? b.conv_bias[c] : 0;
        for (long t = 0; t < TILE; ++t) v[t] = bias;
        for (long k = 0; k < b.taps; ++k) {
            const float w = b.conv[c * b.taps + k];
            const long back = b.taps - 1 - k, first = std::max(0L, back - start);
            if (w != 0)
                for (long t = first; t < steps; ++t) v[t] += w * from[t - back];
        }
        lift(most, largest(from, steps));
        for (long t = steps; t < TILE; ++t) v[t] = v[steps - 1];
        lift(live_x, largest(v, TILE));
        lift(live_x, largest(from, steps));
        return silu(v);
    }

    // y of sixteen channels over a tile, and their states after it.
    bool scanned(long g) {
        const long first = g * LANES, count = std::min<long>(LANES, shown.size() - first);
        alignas(64) float step[TILE][LANES] = {}, drive[TILE][LANES] = {}, sum[TILE][LANES] = {};
        for (long j = 0; j < count; ++j) {
            const float *d = &delta[shown[first + j] * TILE], *u = &x[shown[first + j] * TILE];
            for (long t = 0; t < TILE; ++t) {
                step[t][j] = d[t];
                drive[t][j] = d[t] * u[t];
            }
        }
        lift(driven, largest(step[0], TILE * LANES));
        lift(driven, largest(drive[0], TILE * LANES));
        float reach[LANES] = {};
        for (long t = 0; t < TILE; ++t)
            for (long j = 0; j < LANES; ++j) reach[j] += step[t][j];
        for (long i = 0; i < b.n; ++i) {
            const float *B = &mixed[(b.rank + i) * TILE], *C = &mixed[(b.rank + b.n + i) * TILE];
            const float* rate = &a[(g * b.n + i) * LANES];
            bool keeps = true;
            for (long j = 0; j < LANES; ++j) keeps &= reach[j] * rate[j] >= NO_CHANGE;
            if (!keeps && !fading(step, rate)) return false;
            float* const state = &h[(g * b.n + i) * LANES];
            lanes held, rates;
            std::memcpy(&held, state, sizeof held);
            std::memcpy(&rates, rate, sizeof rates);
            if (keeps) {
                if (is_zero(B) && is_zero(C)) continue;
                for (long t = 0; t < TILE; ++t) {
                    held = held + *(const lanes*)drive[t] * B[t];
                    *(lanes*)sum[t] += held * C[t];
                }
            } else
                for (long t = 0; t < TILE; ++t) {
                    const lanes kept = *(const lanes*)step[t] * rates >= lanes{} + NO_CHANGE ? held : lanes{};
                    held = kept + *(const lanes*)drive[t] * B[t];
                    *(lanes*)sum[t] += held * C[t];
                }
            std::memcpy(state, &held, sizeof held);
        }
        for (long j = 0; j < count; ++j)
            for (long t = 0; t < TILE; ++t) y[shown[first + j] * TILE + t] = sum[t][j];
        return true;
    }

    // Whether every exponential of these steps and rates is 0 or 1.
    static bool fading(const float (*step)[LANES], const float* rate) {
        int between = 0;
        for (long t = 0; t < TILE; ++t)
            for (long j = 0; j < LANES; ++j) {
                const float v = step[t][j] * rate[j];
                between |= !((v >= NO_CHANGE) | (v <= LOW));
            }
        return !between;
    }

    static bool is_zero(const float* v) {
        int any = 0;
        for (long t = 0; t < TILE; ++t) any |= v[t] != 0;
        return !any;
    }

    // Whether nothing, in the channels that were left out either, can have been infinite or no number.
    bool finite(long length) const {
        const double conv = most_in_a_row(b.conv, b.channels, b.taps);
        const double bias = b.conv_bias ? largest(b.conv_bias, b.channels) : 0;
        const double idle = idle_x * conv + bias, seen = std::max<double>(live_x, idle);
        const double step = columns * (double)most_in_a_row(b.dt_proj, b.channels, b.rank) + largest(b.dt_bias, b.channels);
        const double drive = std::max<double>(driven, step * seen);
        const double state = drive * columns * (double)length;
        const double read = state * columns * (double)b.n + largest(b.D, b.channels) * seen;
        const double bounds[] = {idle, step, state, read, read * idle_z, most, live_x,
                                 columns, largest(b.out_proj, b.width * b.channels) * (double)most * b.channels};
        for (double bound : bounds)
            if (!(bound <= MOST)) return false;
        return true;
    }
};

}  // namespace

// xz (batch, 2 channels, length) with strides of the first two; weights as the fused kernel of mamba_ssm takes them, A
// negative, biases of the convolution and of out_proj or null; out (batch, length, width), all 0 on entry. Returns whether
// out is what it should be.
extern "C" int exact_inner(const float* xz, const float* conv, const float* conv_bias, const float* x_proj,
                           const float* dt_proj, const float* dt_bias, const float* A, const float* D, const float* out_proj,
                           const float* out_bias, float* out, long batch_stride, long channel_stride, long batch,
                           long channels, long n, long rank, long width, long taps, long length) {
    const Block block = {conv, conv_bias, x_proj, dt_proj, dt_bias, A, D, out_proj, out_bias, channels, n, rank, width, taps};
    Inner inner(block);
    if (!inner.tame()) return 0;
    inner.pass_over(xz, batch_stride, channel_stride, batch, length);
    for (long i = 0; i < batch; ++i)
        if (!inner.run(xz + i * batch_stride, channel_stride, length, out + i * length * width)) return 0;
    return 1;
}
