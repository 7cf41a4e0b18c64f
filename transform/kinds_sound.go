package transform

import (
	"errors"
	"fmt"
	"math"

	"github.com/noether-ml/noether/audio"
)

func hueKind() Kind {
	return Kind{
		Name:   "hue",
		Doc:    "Turns the colours by a part of the colour circle.",
		Short:  []string{"shift"},
		Params: []Param{{Name: "shift", Doc: "parts of the circle; 1/3 makes red green", Required: true, Min: -0.5, Max: 0.5}},
		build:  func(v values) (Transform, error) { return Hue{v.law("shift")}, nil },
	}
}

func saturationKind() Kind {
	return Kind{
		Name:   "saturation",
		Doc:    "Mixes the image with its own grey by a factor and clips it to [0, 1].",
		Short:  []string{"factor"},
		Params: []Param{{Name: "factor", Doc: "0 gives grey, 1 the image itself, below 0 the complementary colours", Required: true, Min: math.Inf(-1), Max: math.Inf(1)}},
		build:  func(v values) (Transform, error) { return Saturation{v.law("factor")}, nil },
	}
}

func jpegKind() Kind {
	return Kind{
		Name:   "jpeg",
		Doc:    "Writes the image as JPEG and reads it again.",
		Short:  []string{"quality"},
		Params: []Param{{Name: "quality", Doc: "rounded; 0 is as 1", Required: true, Min: 0, Max: 100}},
		build:  func(v values) (Transform, error) { return JPEG{v.law("quality")}, nil },
	}
}

func timeStretchKind() Kind {
	return Kind{
		Name:   "time-stretch",
		Doc:    "Plays a sound faster or slower and keeps its pitch.",
		Short:  []string{"rate"},
		Sound:  true,
		Params: []Param{{Name: "rate", Doc: "2 is twice as fast", Required: true, Min: 0.25, Max: 4}},
		build:  func(v values) (Transform, error) { return TimeStretch{Rate: v.law("rate")}, nil },
	}
}

func pitchShiftKind() Kind {
	return Kind{
		Name:   "pitch-shift",
		Doc:    "Raises the pitch of a sound and keeps its length.",
		Short:  []string{"semitones"},
		Sound:  true,
		Params: []Param{{Name: "semitones", Doc: "12 is an octave", Unit: "semitones", Required: true, Min: -24, Max: 24}},
		build:  func(v values) (Transform, error) { return PitchShift{Semitones: v.law("semitones")}, nil },
	}
}

func whiteNoiseKind() Kind {
	return Kind{
		Name:  "white-noise",
		Doc:   "Adds Gaussian noise to a sound, at a distance in decibels from the sound or from full scale.",
		Short: []string{"snr"},
		Sound: true,
		Params: []Param{
			{Name: "snr", Doc: "of the sound's power over the noise's", Unit: "dB", Min: -100, Max: 200},
			{Name: "level", Doc: "of the noise, in place of snr", Unit: "dBFS", Min: -200, Max: 100},
		},
		build: func(v values) (Transform, error) {
			if v.has("snr") == v.has("level") {
				return nil, errors.New("set snr or level, one of the two")
			}
			return WhiteNoise{SNR: v.law("snr"), Level: v.law("level"), Absolute: v.has("level")}, nil
		},
	}
}

func reverbKind() Kind {
	return Kind{
		Name:   "reverb",
		Doc:    "Puts a sound into a room of 5.6 x 3.9 x 3 m, 35 cm from the microphone, at a reverberation time.",
		Short:  []string{"rt60"},
		Sound:  true,
		Params: []Param{{Name: "rt60", Doc: "time for 60 dB; what is drawn below 0.105, which the room cannot have, is drawn again", Unit: "seconds", Required: true, Min: 0, Max: 10}},
		build: func(v values) (Transform, error) {
			law := v.law("rt60")
			if shortest := audio.Meeting().Shortest(); law.High < shortest || law.Fixed() && law.Low < shortest {
				return nil, fmt.Errorf("rt60 %v: the room has %.3f seconds or more", law, shortest)
			}
			return Reverb{RT60: law}, nil
		},
	}
}

func gainKind() Kind {
	return Kind{
		Name:   "gain",
		Doc:    "Makes a sound louder, without clipping.",
		Short:  []string{"db"},
		Sound:  true,
		Params: []Param{{Name: "db", Doc: "6 is about twice the amplitude", Unit: "dB", Required: true, Min: -200, Max: 100}},
		build:  func(v values) (Transform, error) { return Gain{DB: v.law("db")}, nil },
	}
}

func lowPassKind() Kind {
	return Kind{
		Name:   "low-pass",
		Doc:    "Takes away what lies above a frequency, by a Butterworth filter of order 4.",
		Short:  []string{"frequency"},
		Sound:  true,
		Params: []Param{frequencyParam()},
		build:  func(v values) (Transform, error) { return Filter{Frequency: v.law("frequency")}, nil },
	}
}

func highPassKind() Kind {
	return Kind{
		Name:   "high-pass",
		Doc:    "Takes away what lies below a frequency, by a Butterworth filter of order 4.",
		Short:  []string{"frequency"},
		Sound:  true,
		Params: []Param{frequencyParam()},
		build:  func(v values) (Transform, error) { return Filter{Frequency: v.law("frequency"), High: true}, nil },
	}
}

func frequencyParam() Param {
	return Param{Name: "frequency", Doc: "where the sound is 3 dB down", Unit: "Hz", Required: true, Above: true, Max: 1e6}
}
