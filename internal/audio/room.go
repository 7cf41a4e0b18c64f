package audio

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"sync"

	"gonum.org/v1/gonum/dsp/fourier"
)

// A Room is a box with a sound source and a microphone. All walls have the same reflection
// coefficient, the ratio of the amplitudes after and before a reflection.
type Room struct {
	Size       [3]float64 // metres
	Source     [3]float64 // metres from a corner
	Microphone [3]float64 // likewise
}

// MeetingRoom returns the room of Plachouras et al. 2025, "Towards a Unified Representation
// Evaluation Framework Beyond Downstream Tasks": 5.6 x 3.9 x 3 m, with the microphone 35 cm from
// the source.
func MeetingRoom() Room {
	return Room{Size: [3]float64{5.6, 3.9, 3}, Source: [3]float64{3.5, 2.7, 2.1}, Microphone: [3]float64{3.5, 3.05, 2.1}}
}

const (
	speedOfSound = 343  // m/s
	early        = 0.03 // seconds that are computed by the image-source method
)

// ShortestTime returns the shortest reverberation time of the room by Sabine's formula, 24 ln 10 V
// / (c S), in seconds: the time with fully absorbing walls. V is the volume, S the area of all
// walls and c the speed of sound.
func (r Room) ShortestTime() float64 {
	x, y, z := r.Size[0], r.Size[1], r.Size[2]
	return 24 * math.Ln10 * x * y * z / (speedOfSound * 2 * (x*y + x*z + y*z))
}

// Response returns n samples of the impulse response of the room with a reverberation time rt60 in
// seconds, at rate samples a second. The direct sound is 1 at sample 0. noise is the source of
// random numbers.
//
// Up to 30 ms it is computed by the image-source method (Allen and Berkley 1979): each reflection
// is the sound of an image. With the reflection coefficient beta, an image at distance d after k
// reflections arrives at (d - d0) / c with amplitude beta^k d0 / d, where d0 is the distance from
// source to microphone and c the speed of sound. After that it is Gaussian noise with the mean
// power of the images over directions u (Lehmann and Johansson 2010), in a room of volume V and
// sides L_i:
//
//	P(t)  = 4 pi c d0^2 / V mean_u exp(-kappa t g(u))
//	g(u)  = sum_i |u_i| / L_i
//	kappa = -2 c ln beta
//
// Here t is the time since the source emitted the sound; sample 0 is at t = d0 / c.
//
// beta is chosen so that P and the direct sound decay by 60 dB within rt60, by a line through
// Schroeder's backward integral between -5 and -35 dB. Single early reflections differ from P, so
// below 0.2 s the reverberation time of a response is 8 % too short in the mean, and at most 16 %.
func (r Room) Response(rt60 float64, rate, n int, noise *rand.Rand) ([]float32, error) {
	if shortest := r.ShortestTime(); !(rt60 >= shortest) {
		return nil, fmt.Errorf("a reverberation time of %v s: it must be at least %.3f s for this room", rt60, shortest)
	}
	kappa := r.decay(rt60)
	beta := math.Exp(-kappa / (2 * speedOfSound))
	h := make([]float64, n)
	r.addImages(h, beta, rate)
	r.addTail(h, kappa, rate, noise)
	out := make([]float32, n)
	for i, v := range h {
		out[i] = float32(v)
	}
	return out, nil
}

// directDistance returns the distance of the microphone from the source in metres.
func (r Room) directDistance() float64 {
	var sum float64
	for i := range r.Source {
		sum += (r.Source[i] - r.Microphone[i]) * (r.Source[i] - r.Microphone[i])
	}
	return math.Sqrt(sum)
}

func (r Room) addImages(h []float64, beta float64, rate int) {
	maxDistance := early*speedOfSound + r.directDistance()
	var axes [3][]image
	for i := range axes {
		axes[i] = r.images(i, maxDistance)
	}
	d0 := r.directDistance()
	for _, x := range axes[0] {
		for _, y := range axes[1] {
			for _, z := range axes[2] {
				d := math.Sqrt(x.offset*x.offset + y.offset*y.offset + z.offset*z.offset)
				if d < maxDistance {
					addImpulse(h, (d-d0)/speedOfSound*float64(rate), math.Pow(beta, float64(x.reflections+y.reflections+z.reflections))*d0/d)
				}
			}
		}
	}
}

// An image is one coordinate of an image source.
type image struct {
	offset      float64 // from the microphone, in metres
	reflections int     // at the two walls of the axis
}

// images returns the coordinates of the image sources along an axis, up to a distance in metres.
func (r Room) images(axis int, maxDistance float64) []image {
	size, source, microphone := r.Size[axis], r.Source[axis], r.Microphone[axis]
	var out []image
	for m := -int(maxDistance/size/2) - 1; m <= int(maxDistance/size/2)+1; m++ {
		out = append(out, image{2*float64(m)*size + source - microphone, abs(2 * m)}, image{2*float64(m)*size - source - microphone, abs(2*m - 1)})
	}
	return out
}

func abs(v int) int { return max(v, -v) }

// addImpulse adds an impulse to h at a fractional sample: a sinc with a Hann window of 16 samples
// on each side.
func addImpulse(h []float64, at, amplitude float64) {
	const half = 16
	for k := max(0, int(math.Ceil(at-half))); k < min(len(h), int(at+half)+1); k++ {
		t := float64(k) - at
		h[k] += amplitude * sinc(t) * (1 + math.Cos(math.Pi*t/half)) / 2
	}
}

// addTail adds the noise after the early reflections to the impulse response h.
func (r Room) addTail(h []float64, kappa float64, rate int, noise *rand.Rand) {
	bins := directions(r.Size)
	d0 := r.directDistance()
	// P of one sample, without its mean over directions.
	power := 4 * math.Pi * speedOfSound * d0 * d0 / (r.Size[0] * r.Size[1] * r.Size[2]) / float64(rate)
	const step = 32 // samples of the same power
	for from := int(early * float64(rate)); from < len(h); from += step {
		t := (float64(from)+step/2)/float64(rate) + d0/speedOfSound
		var mean float64
		for _, b := range bins {
			mean += b.fraction * math.Exp(-kappa*t*b.g)
		}
		sigma := math.Sqrt(power * mean)
		for i := from; i < min(from+step, len(h)); i++ {
			h[i] += sigma * noise.NormFloat64()
		}
	}
}

// A wallDirection is a bin of the histogram of g, the number of reflections per metre, over all
// directions.
type wallDirection struct {
	g        float64 // mean of the directions in the bin
	fraction float64 // of all directions
}

var directionCache sync.Map // from the size of a room to []wallDirection

// directions computes a histogram of g with 64 bins and returns those that are not empty. By
// symmetry it takes directions of one octant only.
func directions(size [3]float64) []wallDirection {
	if known, ok := directionCache.Load(size); ok {
		return known.([]wallDirection)
	}
	const steps, count = 200, 64 // steps x steps directions, number of bins
	lowest, highest := 1/max(size[0], size[1], size[2]), math.Sqrt(1/(size[0]*size[0])+1/(size[1]*size[1])+1/(size[2]*size[2]))
	bins := make([]wallDirection, count)
	for i := range steps {
		z := (float64(i) + 0.5) / steps
		for j := range steps {
			sin, cos := math.Sincos((float64(j) + 0.5) / steps * math.Pi / 2)
			ring := math.Sqrt(1 - z*z)
			g := ring*cos/size[0] + ring*sin/size[1] + z/size[2]
			b := &bins[min(count-1, max(0, int((g-lowest)/(highest-lowest)*count)))]
			b.g += g
			b.fraction++
		}
	}
	nonEmpty := bins[:0]
	for _, b := range bins {
		if b.fraction > 0 {
			nonEmpty = append(nonEmpty, wallDirection{b.g / b.fraction, b.fraction / (steps * steps)})
		}
	}
	directionCache.Store(size, nonEmpty)
	return nonEmpty
}

// decay returns the kappa of a reverberation time, by bisection.
func (r Room) decay(rt60 float64) float64 {
	low, high := 1e-3, 1e5
	for range 32 {
		middle := math.Sqrt(low * high)
		if r.expectedTime(middle, rt60) > rt60 {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Sqrt(low * high)
}

// expectedTime returns the reverberation time of P and the direct sound for a kappa. It evaluates
// Schroeder's integral at 200 points up to 2 rt60.
func (r Room) expectedTime(kappa, rt60 float64) float64 {
	d0 := r.directDistance()
	gain := 4 * math.Pi * speedOfSound * d0 * d0 / (r.Size[0] * r.Size[1] * r.Size[2])
	bins := directions(r.Size)
	const points = 200
	energy := make([]float64, points)
	step := 2 * rt60 / points
	for i := range energy {
		t := float64(i)*step + d0/speedOfSound
		for _, b := range bins { // the integral of P from t on
			energy[i] += gain * b.fraction / (kappa * b.g) * math.Exp(-kappa*b.g*t)
		}
		if i == 0 {
			energy[i]++ // the direct sound
		}
	}
	return fitDecay(energy, step)
}

// fitDecay returns the time of a decay by 60 dB in seconds, given the remaining energy every step
// seconds, by linear regression between -5 and -35 dB. The time is infinite if there is no decay.
func fitDecay(energy []float64, step float64) float64 {
	var n, st, sy, stt, sty float64
	for i, e := range energy {
		db := 10 * math.Log10(e/energy[0])
		if db > -5 {
			continue
		}
		if db < -35 {
			break
		}
		t := float64(i) * step
		n, st, sy, stt, sty = n+1, st+t, sy+db, stt+t*t, sty+t*db
	}
	slope := (n*sty - st*sy) / (n*stt - st*st)
	switch {
	case n < 2 && energy[len(energy)-1] < energy[0]*1e-3: // decayed within one step
		return 0
	case !(slope < 0):
		return math.Inf(1)
	}
	return -60 / slope
}

// Convolve returns the convolution of a waveform with an impulse response, cut to the length of the
// waveform.
func Convolve(wave, response []float32) []float32 {
	if len(wave) == 0 || len(response) == 0 {
		return make([]float32, len(wave))
	}
	// The least power of two that holds the len(wave) + len(response) - 1 samples of the result.
	size := 1 << bits.Len(uint(len(wave)+len(response)-2))
	fft := fourier.NewFFT(size)
	a, b := spectrumOf(fft, wave, size), spectrumOf(fft, response, size)
	for i := range a {
		a[i] *= b[i]
	}
	out := make([]float32, len(wave))
	for i, v := range fft.Sequence(nil, a)[:len(wave)] {
		out[i] = float32(v / float64(size))
	}
	return out
}

// spectrumOf returns the Fourier transform of a waveform that is padded to size.
func spectrumOf(fft *fourier.FFT, wave []float32, size int) []complex128 {
	x := make([]float64, size)
	for i, v := range wave {
		x[i] = float64(v)
	}
	return fft.Coefficients(nil, x)
}
