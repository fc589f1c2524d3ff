// The recurrence of the selective scan in float32; native.py compiles and calls it, selective_scan.py defines it.
//
//   h[t] = exp(delta[t] A) h[t-1] + delta[t] u[t] B[t],   y[t] = sum over n of h[t] C[t], n = 0 first
//
// Sixteen channels of a group are the lanes of one vector. Per state column n, h stays in a register while time
// runs over a tile, so B and C are read in the layout they come in and nothing is summed across lanes.
//
// Left out is only what adds a zero to finite numbers: a tile's steps of a column that keeps what it holds and is neither
// written nor read in them, and the tiles of channels that hold nothing and get nothing.

#include <vector>

namespace {

constexpr long LANES = 16;
constexpr long TILE = 64;  // steps; three tiles of vectors fit the first-level cache

typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int int_lanes __attribute__((vector_size(4 * LANES)));
typedef int bits __attribute__((may_alias));  // of a float

inline lanes power_of_two(int_lanes k) { return (lanes)((k + 127) << 23); }

// exp(x) within 2 ulp: exactly 1 for |x| <= 2^-25, exactly 0 from -104 down, inf from 89 up, NaN for NaN.
// x = k ln 2 + r with |r| <= ln(2)/2, then the Taylor polynomial of degree 7 (its remainder is under 2^-27), then
// two scalings by powers of two, because 2^k itself may lie outside the float range.
inline lanes exponential(lanes x) {
    const float rounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, left in the low bits
    const lanes low = lanes{} - 105.0f, high = lanes{} + 89.0f;
    x = x < low ? low : x;
    x = x > high ? high : x;
    const lanes rounded = x * 1.44269504f + rounder;
    const int_lanes k = (int_lanes)rounded - 0x4B400000;
    const lanes whole = rounded - rounder;
    const lanes r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;  // ln 2 = 0.693359375 - 2.1219444e-4
    lanes p = r * (1.0f / 5040) + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    const int_lanes half = k >> 1;
    return p * power_of_two(half) * power_of_two(k - half);
}

inline lanes magnitude(lanes x) { return (lanes)((int_lanes)x & 0x7fffffff); }

// Whether every |x| is at most 2^-25, where exp(x) is 1; false where one is NaN.
inline bool is_one(lanes x) {
    const int_lanes larger = ~(x <= 0x1p-25f);
    int any = 0;
    for (long j = 0; j < LANES; ++j) any |= larger[j];
    return !any;
}

// Whether every lane is finite; sums of magnitudes say so of all their terms, if they do not overflow.
inline bool finite(lanes x) {
    const int_lanes equal = x - x == lanes{};
    int all = -1;
    for (long j = 0; j < LANES; ++j) all &= equal[j];
    return all;
}

inline bool is_zero(lanes x) {
    int any = 0;
    for (long j = 0; j < LANES; ++j) any |= ((int_lanes)x)[j] & 0x7fffffff;
    return !any;
}

// What a tile of one column of B and C holds.
enum Kind : char { USED, IDLE, INFINITE };  // IDLE: all zeros; INFINITE: some number is not finite

inline Kind kind(const float* written, const float* read, long steps) {
    const bits *const w = (const bits*)written, *const r = (const bits*)read;
    int used = 0, infinite = 0;  // of integers, for the compiler to make vectors of
    for (long t = 0; t < steps; ++t) {
        const int a = w[t] & 0x7fffffff, b = r[t] & 0x7fffffff;
        used |= a | b;
        infinite |= (a >= 0x7f800000) | (b >= 0x7f800000);
    }
    return infinite ? INFINITE : used ? USED : IDLE;
}

// rows[j][t] to tile[t][j] for `count` lanes j; the lanes beyond are 0
inline void load(lanes* tile, const float* rows, long stride, long count, long steps) {
    for (long t = 0; t < steps; ++t) {
        lanes v = {};
        for (long j = 0; j < count; ++j) v[j] = rows[j * stride + t];
        tile[t] = v;
    }
}

inline void store(float* rows, const lanes* tile, long stride, long count, long steps) {
    for (long j = 0; j < count; ++j)
        for (long t = 0; t < steps; ++t) rows[j * stride + t] = tile[t][j];
}

}  // namespace

// u, delta, y (batch, channels, length); A (channels, n); B, C (batch, groups, n, length); last (batch, channels, n), which
// holds the state before the first step on entry and the one after the last step on return; scratch (2, n, 16). All
// contiguous. scratch is aligned to 64 bytes.
extern "C" void selective_scan(const float* u, const float* delta, const float* A, const float* B, const float* C,
                               float* y, float* last, float* scratch, long batch, long channels, long groups, long n,
                               long length) {
    const long width = channels / groups;
    lanes* const h = (lanes*)scratch;
    lanes* const a = h + n;
    lanes step[TILE], drive[TILE], out[TILE];
    std::vector<Kind> kinds(n * ((length + TILE - 1) / TILE));  // (tiles, n)
    for (long b = 0; b < batch; ++b)
        for (long g = 0; g < groups; ++g) {
            const long column = (b * groups + g) * n * length;
            bool tame = true;
            for (long start = 0; start < length; start += TILE)
                for (long i = 0; i < n; ++i) {
                    const long steps = length - start < TILE ? length - start : TILE, at = column + i * length + start;
                    tame &= (kinds[start / TILE * n + i] = kind(B + at, C + at, steps)) != INFINITE;
                }
            for (long offset = 0; offset < width; offset += LANES) {
                const long count = width - offset < LANES ? width - offset : LANES;
                const long channel = g * width + offset;
                const long row = (b * channels + channel) * length;
                load(a, A + channel * n, n, count, n);
                load(h, last + (b * channels + channel) * n, n, count, n);
                bool empty = true, fades = true;  // all of h is 0; no exponential is above 1 or of a product 0 times infinity
                for (long i = 0; i < n; ++i) {
                    empty &= is_zero(h[i]);
                    fades &= finite(a[i]) && is_zero((lanes)(a[i] > lanes{}));
                }
                for (long start = 0; start < length; start += TILE) {
                    const long steps = length - start < TILE ? length - start : TILE;
                    load(step, delta + row + start, length, count, steps);
                    load(drive, u + row + start, length, count, steps);
                    lanes reach = {}, driven = {};  // no step of the tile, no drive of it, is larger
                    int_lanes backwards = {};
                    for (long t = 0; t < steps; ++t) {
                        drive[t] *= step[t];
                        out[t] = lanes{};
                        reach += magnitude(step[t]);
                        driven += magnitude(drive[t]);
                        backwards |= step[t] < lanes{};
                    }
                    const bool still = tame && is_zero(driven) && fades && finite(reach) && is_zero((lanes)backwards);
                    if (empty && still) {
                        store(y + row + start, out, length, count, steps);
                        continue;
                    }
                    empty = false;
                    const bool plain = finite(driven);
                    for (long i = 0; i < n; ++i) {
                        const float* const B_i = B + column + i * length + start;
                        const float* const C_i = C + column + i * length + start;
                        const lanes a_i = a[i];
                        lanes h_i = h[i];
                        if (is_one(reach * magnitude(a_i))) {  // a memory that keeps what it holds: no exponential is needed
                            if (kinds[start / TILE * n + i] == IDLE && plain && finite(h_i)) continue;
                            for (long t = 0; t < steps; ++t) {
                                h_i = h_i + drive[t] * B_i[t];
                                out[t] += h_i * C_i[t];
                            }
                        } else
                            for (long t = 0; t < steps; ++t) {
                                h_i = exponential(step[t] * a_i) * h_i + drive[t] * B_i[t];
                                out[t] += h_i * C_i[t];
                            }
                        h[i] = h_i;
                    }
                    store(y + row + start, out, length, count, steps);
                }
                store(last + (b * channels + channel) * n, h, n, count, n);
            }
        }
}
