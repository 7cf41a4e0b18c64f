package transform

import (
	"errors"
	"fmt"

	"github.com/noether-ml/noether/internal/audio"
)

// audioKind returns the kind of an audio transform with one required parameter.
func audioKind(name, doc string, p Param, build func(Distribution) Transform) Kind {
	k := numberKind(name, doc, p, build)
	k.Audio = true
	return k
}

func timeStretchKind() Kind {
	return audioKind("time-stretch", "Plays audio faster or slower and keeps its pitch.",
		Param{Name: "rate", Doc: "2 is twice as fast", Min: 0.25, Max: 4},
		func(d Distribution) Transform { return TimeStretch{Rate: d} })
}

func pitchShiftKind() Kind {
	return audioKind("pitch-shift", "Raises the pitch of audio and keeps its length.",
		Param{Name: "semitones", Doc: "12 is an octave", Unit: "semitones", Min: -24, Max: 24},
		func(d Distribution) Transform { return PitchShift{Semitones: d} })
}

func whiteNoiseKind() Kind {
	return Kind{
		Name:  "white-noise",
		Doc:   "Adds Gaussian noise to audio, at a level relative to the audio or to full scale.",
		Short: []string{"snr"},
		Audio: true,
		Params: []Param{
			{Name: "snr", Doc: "ratio of the power of the audio to that of the noise", Unit: "dB", Min: -100, Max: 200},
			{Name: "level", Doc: "level of the noise, in place of snr", Unit: "dBFS", Min: -200, Max: 100},
		},
		build: func(v values) (Transform, error) {
			if v.has("snr") == v.has("level") {
				return nil, errors.New("set snr or level, one of the two")
			}
			return WhiteNoise{SNR: v.dist("snr"), Level: v.dist("level"), Absolute: v.has("level")}, nil
		},
	}
}

func reverbKind() Kind {
	k := audioKind("reverb", "Adds the reverberation of a room of 5.6 x 3.9 x 3 m, with the source 35 cm from the microphone.",
		Param{Name: "rt60", Doc: "time of a decay by 60 dB; values below 0.105, which the room cannot have, are drawn again", Unit: "seconds", Min: 0, Max: 10}, nil)
	// Unlike the function that audioKind makes, it can return errors.
	k.build = func(v values) (Transform, error) {
		rt60 := v.dist("rt60")
		if shortest := audio.MeetingRoom().ShortestTime(); rt60.High < shortest || rt60.Fixed() && rt60.Low < shortest {
			return nil, fmt.Errorf("rt60 %v: the room has %.3f seconds or more", rt60, shortest)
		}
		return Reverb{RT60: rt60}, nil
	}
	return k
}

func gainKind() Kind {
	return audioKind("gain", "Makes audio louder, without clipping.",
		Param{Name: "db", Doc: "6 is about twice the amplitude", Unit: "dB", Min: -200, Max: 100},
		func(d Distribution) Transform { return Gain{DB: d} })
}

func lowPassKind() Kind {
	return audioKind("low-pass", "Attenuates frequencies above a cutoff, by a Butterworth filter of order 4.", cutoffParam(),
		func(d Distribution) Transform { return Filter{Frequency: d} })
}

func highPassKind() Kind {
	return audioKind("high-pass", "Attenuates frequencies below a cutoff, by a Butterworth filter of order 4.", cutoffParam(),
		func(d Distribution) Transform { return Filter{Frequency: d, High: true} })
}

func cutoffParam() Param {
	return Param{Name: "frequency", Doc: "of the cutoff, where the filter is at -3 dB", Unit: "Hz", Above: true, Max: 1e6}
}
