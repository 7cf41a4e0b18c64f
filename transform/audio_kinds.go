package transform

import (
	"errors"
	"fmt"

	"github.com/noether-ml/noether/audio"
)

func timeStretchKind() Kind {
	return Kind{
		Name:   "time-stretch",
		Doc:    "Plays a sound faster or slower and keeps its pitch.",
		Short:  []string{"rate"},
		Audio:  true,
		Params: []Param{{Name: "rate", Doc: "2 is twice as fast", Required: true, Min: 0.25, Max: 4}},
		build:  func(v values) (Transform, error) { return TimeStretch{Rate: v.dist("rate")}, nil },
	}
}

func pitchShiftKind() Kind {
	return Kind{
		Name:   "pitch-shift",
		Doc:    "Raises the pitch of a sound and keeps its length.",
		Short:  []string{"semitones"},
		Audio:  true,
		Params: []Param{{Name: "semitones", Doc: "12 is an octave", Unit: "semitones", Required: true, Min: -24, Max: 24}},
		build:  func(v values) (Transform, error) { return PitchShift{Semitones: v.dist("semitones")}, nil },
	}
}

func whiteNoiseKind() Kind {
	return Kind{
		Name:  "white-noise",
		Doc:   "Adds Gaussian noise to a sound, at a distance in decibels from the sound or from full scale.",
		Short: []string{"snr"},
		Audio: true,
		Params: []Param{
			{Name: "snr", Doc: "of the sound's power over the noise's", Unit: "dB", Min: -100, Max: 200},
			{Name: "level", Doc: "of the noise, in place of snr", Unit: "dBFS", Min: -200, Max: 100},
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
	return Kind{
		Name:   "reverb",
		Doc:    "Puts a sound into a room of 5.6 x 3.9 x 3 m, 35 cm from the microphone, at a reverberation time.",
		Short:  []string{"rt60"},
		Audio:  true,
		Params: []Param{{Name: "rt60", Doc: "time for 60 dB; what is drawn below 0.105, which the room cannot have, is drawn again", Unit: "seconds", Required: true, Min: 0, Max: 10}},
		build: func(v values) (Transform, error) {
			rt60 := v.dist("rt60")
			if shortest := audio.MeetingRoom().ShortestTime(); rt60.High < shortest || rt60.Fixed() && rt60.Low < shortest {
				return nil, fmt.Errorf("rt60 %v: the room has %.3f seconds or more", rt60, shortest)
			}
			return Reverb{RT60: rt60}, nil
		},
	}
}

func gainKind() Kind {
	return Kind{
		Name:   "gain",
		Doc:    "Makes a sound louder, without clipping.",
		Short:  []string{"db"},
		Audio:  true,
		Params: []Param{{Name: "db", Doc: "6 is about twice the amplitude", Unit: "dB", Required: true, Min: -200, Max: 100}},
		build:  func(v values) (Transform, error) { return Gain{DB: v.dist("db")}, nil },
	}
}

func lowPassKind() Kind {
	return Kind{
		Name:   "low-pass",
		Doc:    "Takes away what lies above a frequency, by a Butterworth filter of order 4.",
		Short:  []string{"frequency"},
		Audio:  true,
		Params: []Param{frequencyParam()},
		build:  func(v values) (Transform, error) { return Filter{Frequency: v.dist("frequency")}, nil },
	}
}

func highPassKind() Kind {
	return Kind{
		Name:   "high-pass",
		Doc:    "Takes away what lies below a frequency, by a Butterworth filter of order 4.",
		Short:  []string{"frequency"},
		Audio:  true,
		Params: []Param{frequencyParam()},
		build:  func(v values) (Transform, error) { return Filter{Frequency: v.dist("frequency"), High: true}, nil },
	}
}

func frequencyParam() Param {
	return Param{Name: "frequency", Doc: "where the sound is 3 dB down", Unit: "Hz", Required: true, Above: true, Max: 1e6}
}
