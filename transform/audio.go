package transform

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/noether-ml/noether/internal/audio"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// TimeStretch plays audio faster (rate above 1) or slower and keeps its pitch, by audio.Stretch.
type TimeStretch struct {
	audioOnly
	Rate Distribution // in 0.25 to 4
}

// PitchShift raises the pitch of audio and keeps its length, by audio.ShiftPitch.
type PitchShift struct {
	audioOnly
	Semitones Distribution // in -24 to 24
}

// WhiteNoise adds Gaussian noise to audio. Its power is relative to the audio's or, with Absolute,
// to full scale: With rms the root mean square,
//
//	SNR    20 log10(rms(x) / rms(noise)) in dB, over the whole waveform, zeros at its end included
//	level  20 log10(rms(noise)) in dBFS
//
// The sum is not clipped. Silence has no power, so an SNR adds nothing. Draw seeds the noise. A
// longer waveform starts with the same noise.
type WhiteNoise struct {
	audioOnly
	SNR      Distribution // dB
	Level    Distribution // dBFS
	Absolute bool         // Level sets the power, not SNR
}

// Gain multiplies a waveform by 10^(DB / 20), without clipping.
type Gain struct {
	audioOnly
	DB Distribution // decibels
}

// Filter is a low-pass or high-pass Butterworth filter of order 4.
type Filter struct {
	audioOnly
	Frequency Distribution // the cutoff in Hz
	High      bool         // high-pass instead of low-pass
}

// Reverb convolves audio with audio.MeetingRoom (Plachouras et al. 2025) of a reverberation time,
// in which sound decays by 60 dB. Length stays, and the direct sound's level and time. A time below
// the room's ShortestTime is drawn again; RejectedDraws counts these.
type Reverb struct {
	audioOnly
	RT60 Distribution // seconds
}

func (t TimeStretch) Draw(r *rand.Rand) Op { return stretchOp{t.Rate.Draw(r), cropPosition(r)} }

// cropPosition draws where lengthened audio is cropped, from 0 (earliest) to below 1; without a
// generator, the middle.
func cropPosition(r *rand.Rand) float64 {
	if r == nil {
		return 0.5
	}
	return r.Float64()
}

func (t PitchShift) Draw(r *rand.Rand) Op { return pitchOp{t.Semitones.Draw(r)} }

func (t WhiteNoise) Draw(r *rand.Rand) Op {
	if t.Absolute {
		return whiteNoiseOp{t.Level.Draw(r), true, newNoiseSeed(r)}
	}
	return whiteNoiseOp{t.SNR.Draw(r), false, newNoiseSeed(r)}
}

func (t Gain) Draw(r *rand.Rand) Op   { return gainOp{t.DB.Draw(r)} }
func (t Filter) Draw(r *rand.Rand) Op { return filterOp{t.Frequency.Draw(r), t.High} }

func (t Reverb) Draw(r *rand.Rand) Op {
	shortest, rejected := audio.MeetingRoom().ShortestTime(), 0
	v := t.RT60.Draw(r)
	for ; v < shortest && !t.RT60.Fixed() && t.RT60.High > shortest; rejected++ {
		v = t.RT60.Draw(r)
	}
	return reverbOp{v, rejected, newNoiseSeed(r)}
}

// Random is true: the crop position of slowed audio is drawn.
func (t TimeStretch) Random() bool { return true }
func (t PitchShift) Random() bool  { return anyRandom(t.Semitones) }
func (t WhiteNoise) Random() bool  { return true }
func (t Gain) Random() bool        { return anyRandom(t.DB) }
func (t Filter) Random() bool      { return anyRandom(t.Frequency) }

// Random is true: the late part of an impulse response is noise.
func (t Reverb) Random() bool { return true }

type audioOnly struct{}

func (audioOnly) OnAudio() bool  { return true }
func (audioOnly) OnImages() bool { return false }

// RejectedDraws returns how many values were drawn for an Op, and rejected, before a valid one.
func RejectedDraws(op Op) int {
	if r, ok := op.(interface{ rejectedDraws() int }); ok {
		return r.rejectedDraws()
	}
	return 0
}

type (
	stretchOp    struct{ rate, position float64 } // position: see cropPosition
	pitchOp      struct{ semitones float64 }
	whiteNoiseOp struct {
		db       float64 // the signal-to-noise ratio, or the level if absolute
		absolute bool
		seed     noiseSeed
	}
	gainOp   struct{ db float64 }
	filterOp struct {
		hz   float64 // the cutoff frequency
		high bool    // high-pass, not low-pass
	}
	reverbOp struct {
		rt60     float64 // seconds
		rejected int     // number of times that were drawn before it and are too short for the room
		seed     noiseSeed
	}
)

func (o stretchOp) Parameter() float64    { return o.rate }
func (o pitchOp) Parameter() float64      { return o.semitones }
func (o whiteNoiseOp) Parameter() float64 { return o.db }
func (o gainOp) Parameter() float64       { return o.db }
func (o filterOp) Parameter() float64     { return o.hz }
func (o reverbOp) Parameter() float64     { return o.rt60 }

// PointMap is not known: time is stretched, then cropped or padded.
func (o stretchOp) PointMap(h, w int) (measure.PointMap, bool) { return measure.PointMap{}, false }
func (o stretchOp) CropPosition() float64                      { return o.position }
func (o reverbOp) rejectedDraws() int                          { return o.rejected }

// Renew returns the Op with a new crop position or new noise, for another sample.
func (o stretchOp) Renew(r *rand.Rand) Op    { return stretchOp{o.rate, cropPosition(r)} }
func (o whiteNoiseOp) Renew(r *rand.Rand) Op { return whiteNoiseOp{o.db, o.absolute, newNoiseSeed(r)} }
func (o reverbOp) Renew(r *rand.Rand) Op     { return reverbOp{o.rt60, 0, newNoiseSeed(r)} }

func (o stretchOp) ApplyAudio(wave []float32, rate int) []float32 {
	return audio.Stretch(wave, o.rate, rate)
}

func (o pitchOp) ApplyAudio(wave []float32, rate int) []float32 {
	if o.semitones == 0 {
		return wave
	}
	return audio.ShiftPitch(wave, math.Pow(2, o.semitones/12), rate)
}

func (o whiteNoiseOp) ApplyAudio(wave []float32, rate int) []float32 {
	sigma := math.Pow(10, o.db/20)
	if !o.absolute {
		sigma = rms(wave) * math.Pow(10, -o.db/20)
	}
	r := o.seed.rand()
	out := make([]float32, len(wave))
	for i, v := range wave {
		out[i] = v + float32(sigma*r.NormFloat64())
	}
	return out
}

func rms(wave []float32) float64 {
	var sum float64
	for _, v := range wave {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(max(1, len(wave))))
}

func (o gainOp) ApplyAudio(wave []float32, rate int) []float32 {
	factor := float32(math.Pow(10, o.db/20))
	out := make([]float32, len(wave))
	for i, v := range wave {
		out[i] = factor * v
	}
	return out
}

func (o filterOp) ApplyAudio(wave []float32, rate int) []float32 {
	if o.high {
		return audio.HighPass(wave, o.hz, rate)
	}
	return audio.LowPass(wave, o.hz, rate)
}

func (o reverbOp) ApplyAudio(wave []float32, rate int) []float32 {
	n := min(len(wave), int(1.2*o.rt60*float64(rate))+1) // until the response has decayed by 72 dB
	response, err := audio.MeetingRoom().Response(o.rt60, rate, n, o.seed.rand())
	if err != nil {
		panic(fmt.Sprintf("transform: %v", err)) // Make rejects such values
	}
	return audio.Convolve(wave, response)
}

// Apply panics: a tensor has no sampling rate.
func (stretchOp) Apply(dst, src tensor.Tensor)    { panicAudioOnly() }
func (pitchOp) Apply(dst, src tensor.Tensor)      { panicAudioOnly() }
func (whiteNoiseOp) Apply(dst, src tensor.Tensor) { panicAudioOnly() }
func (gainOp) Apply(dst, src tensor.Tensor)       { panicAudioOnly() }
func (filterOp) Apply(dst, src tensor.Tensor)     { panicAudioOnly() }
func (reverbOp) Apply(dst, src tensor.Tensor)     { panicAudioOnly() }

func panicAudioOnly() { panic("transform: Apply of an audio transform to an image; see OnImages") }
