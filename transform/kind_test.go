package transform

import (
	"math"
	"strings"
	"testing"
)

// TestKindsAreComplete checks the descriptions of the kinds of transformations. Short lists the
// parameters that the short form of a kind sets, such as the angle in "rotate: 90".
func TestKindsAreComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range Kinds() {
		if seen[k.Name] {
			t.Errorf("%s is listed twice", k.Name)
		}
		seen[k.Name] = true
		if !strings.HasSuffix(k.Doc, ".") || strings.Contains(k.Doc, "\n") {
			t.Errorf("%s: the doc is not one sentence: %q", k.Name, k.Doc)
		}
		for _, name := range k.Short {
			if _, ok := k.Param(name); !ok {
				t.Errorf("%s: the short form sets %q, which is not a parameter", k.Name, name)
			}
		}
		for _, p := range k.Params {
			if p.Doc == "" {
				t.Errorf("%s: %s has no doc", k.Name, p.Name)
			}
			if p.Default != nil && p.Check(p.Default) != nil {
				t.Errorf("%s: Check of the default of %s: %v", k.Name, p.Name, p.Check(p.Default))
			}
		}
	}
	for _, name := range strings.Fields("rotate translate scale shear affine flip crop grayscale brightness contrast" +
		" gaussian-blur gaussian-noise identity replace") {
		if !seen[name] {
			t.Errorf("kind %s is missing", name)
		}
	}
}

func TestMakeReadsEveryParameter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind string
		args Args
		want Transform
	}{
		{"identity", Args{}, Identity{}},
		{"rotate", Args{"angle": Uniform(-15, 15)}, Rotate{Angle: Uniform(-15, 15)}},
		{"rotate", Args{"angle": Fixed(30), "interpolation": Option("nearest"), "fill": Fixed(0)},
			Rotate{Fixed(30), Sampling{Nearest: true, Outside: Filled}}},
		{"translate", Args{"y": Fixed(0.5), "outside": Option("reflect")}, Translate{Y: Fixed(0.5), Sampling: Sampling{Outside: Reflection}}},
		{"translate", Args{"x": Fixed(0.5), "outside": Option("fill"), "fill": Fixed(0.5)},
			Translate{X: Fixed(0.5), Sampling: Sampling{Outside: Filled, Fill: 0.5}}},
		{"scale", Args{"factor": Uniform(0.8, 1.2)}, Scale{Factor: Uniform(0.8, 1.2)}},
		{"shear", Args{"x": Fixed(1), "y": Fixed(2)}, Shear{X: Fixed(1), Y: Fixed(2)}},
		{"affine", Args{}, Affine{Scale: Fixed(1)}},
		{"affine", Args{"rotate": Uniform(-15, 15), "translate": Uniform(-0.05, 0.05), "scale": Uniform(0.9, 1.1)},
			Affine{Rotate: Uniform(-15, 15), X: Uniform(-0.05, 0.05), Y: Uniform(-0.05, 0.05), Scale: Uniform(0.9, 1.1)}},
		{"affine", Args{"translate": Fixed(0.1), "translate-y": Fixed(0), "shear-x": Fixed(3), "shear-y": Fixed(4)},
			Affine{X: Fixed(0.1), Scale: Fixed(1), ShearX: Fixed(3), ShearY: Fixed(4)}},
		{"affine", Args{"translate": Fixed(0.1), "translate-x": Fixed(0.2)}, Affine{X: Fixed(0.2), Y: Fixed(0.1), Scale: Fixed(1)}},
		{"flip", Args{}, Flip{}},
		{"flip", Args{"direction": Option("vertical")}, Flip{Vertical: true}},
		{"crop", Args{"area": Uniform(0.5, 1), "position": Option("random")}, Crop{Size: Uniform(0.5, 1), RandomPosition: true}},
		{"crop", Args{"side": Fixed(0.5), "interpolation": Option("nearest")}, Crop{Size: Fixed(0.5), Side: true, Nearest: true}},
		{"flip", Args{"probability": Fixed(0.5)}, RandomFlip{Probability: 0.5}},
		{"flip", Args{"probability": Fixed(0), "direction": Option("vertical")}, RandomFlip{Vertical: true}},
		{"random-crop", Args{"padding": Fixed(0.125)}, RandomCrop{0.125}},
		{"trivial-augment", nil, TrivialAugment{}},
		{"grayscale", nil, Grayscale{}},
		{"brightness", Args{"factor": Fixed(0)}, Brightness{Fixed(0)}},
		{"contrast", Args{"factor": Fixed(2)}, Contrast{Fixed(2)}},
		{"brightness", Args{"factor": Fixed(-2)}, Brightness{Fixed(-2)}},
		{"hue", Args{"shift": Uniform(-0.5, 0.5)}, Hue{Uniform(-0.5, 0.5)}},
		{"saturation", Args{"factor": Uniform(-2, 2)}, Saturation{Uniform(-2, 2)}},
		{"jpeg", Args{"quality": Fixed(30)}, JPEG{Fixed(30)}},
		{"time-stretch", Args{"rate": Uniform(0.5, 2)}, TimeStretch{Rate: Uniform(0.5, 2)}},
		{"pitch-shift", Args{"semitones": Fixed(-12)}, PitchShift{Semitones: Fixed(-12)}},
		{"white-noise", Args{"snr": Uniform(-30, 50)}, WhiteNoise{SNR: Uniform(-30, 50)}},
		{"white-noise", Args{"level": Fixed(-40)}, WhiteNoise{Level: Fixed(-40), Absolute: true}},
		{"reverb", Args{"rt60": Uniform(0, 3)}, Reverb{RT60: Uniform(0, 3)}},
		{"gain", Args{"db": Fixed(6)}, Gain{DB: Fixed(6)}},
		{"low-pass", Args{"frequency": Fixed(1000)}, Filter{Frequency: Fixed(1000)}},
		{"high-pass", Args{"frequency": Fixed(100)}, Filter{Frequency: Fixed(100), High: true}},
		{"gaussian-blur", Args{"sigma": Uniform(1, 2)}, GaussianBlur{Sigma: Uniform(1, 2)}},
		{"gaussian-blur", Args{"sigma": Fixed(1), "kernel": Fixed(5)}, GaussianBlur{Fixed(1), 5}},
		{"gaussian-noise", Args{"sigma": Fixed(0.1)}, GaussianNoise{Fixed(0.1)}},
		{"replace", Args{}, Replace{}},
		{"replace", Args{"noise": Option("normal")}, Replace{Normal: true}},
	} {
		if got := mustMake(t, c.kind, c.args); got != c.want {
			t.Errorf("%s %v: %+v, want %+v", c.kind, c.args, got, c.want)
		}
	}
}

func TestMakeErrors(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		kind string
		args Args
		want string
	}{
		{"rotate", Args{}, "rotate: angle is missing"},
		{"rotate", Args{"angel": Fixed(1)}, `rotate: there is no parameter "angel" (it takes angle, interpolation, outside, fill)`},
		{"rotate", Args{"angle": Fixed(400)}, "rotate: angle must be between -360 and 360 degrees, not 400"},
		{"rotate", Args{"angle": Uniform(0, 400)}, "rotate: angle must be between -360 and 360 degrees, not 400"},
		{"rotate", Args{"angle": Fixed(nan)}, "rotate: angle must be a finite number, not NaN"},
		{"rotate", Args{"angle": Uniform(0, inf)}, "rotate: angle must be a finite number, not +Inf"},
		{"rotate", Args{"angle": Uniform(15, -15)}, "rotate: angle: the range [15, -15] has its ends exchanged"},
		{"rotate", Args{"angle": Option("left")}, `rotate: angle must be a number, not "left"`},
		{"rotate", Args{"angle": nil}, "rotate: angle has no value: it must be a number, a range or a word"},
		{"rotate", Args{"angle": Fixed(1), "interpolation": Option("cubic")}, `rotate: interpolation must be bilinear or nearest, not "cubic"`},
		{"rotate", Args{"angle": Fixed(1), "interpolation": Uniform(1, 3)}, "rotate: interpolation must be bilinear or nearest, not [1, 3]"},
		{"rotate", Args{"angle": Fixed(1), "fill": Uniform(0, 1)}, "rotate: fill must be one number, not the range [0, 1]"},
		{"rotate", Args{"angle": Fixed(1), "fill": Fixed(1), "outside": Option("reflect")},
			"rotate: fill has no meaning with outside: reflect; leave one of them out"},
		{"translate", Args{"x": Fixed(8)}, "translate: x must be between -1 and 1, not 8"},
		{"scale", Args{"factor": Fixed(0)}, "scale: factor must be above 0, not 0"},
		{"shear", Args{"x": Fixed(90)}, "shear: x must be between -89 and 89 degrees, not 90"},
		{"contrast", Args{"factor": Fixed(-0.5)}, "contrast: factor must be at least 0, not -0.5"},
		{"hue", Args{"shift": Fixed(0.6)}, "hue: shift must be between -0.5 and 0.5, not 0.6"},
		{"white-noise", Args{}, "white-noise: set snr or level, one of the two"},
		// 0.105 seconds is the shortest reverberation time that the simulated room can have.
		{"reverb", Args{"rt60": Fixed(0.1)}, "reverb: rt60 0.1: the room has 0.105 seconds or more"},
		{"reverb", Args{"rt60": Uniform(0, 0.1)}, "reverb: rt60 [0, 0.1]: the room has 0.105 seconds or more"},
		{"crop", Args{}, "crop: set area or side, one of the two"},
		{"crop", Args{"area": Fixed(1), "side": Fixed(1)}, "crop: set area or side, one of the two"},
		{"crop", Args{"area": Fixed(0)}, "crop: area must be above 0 and at most 1, not 0"},
		{"flip", Args{"probability": Fixed(1.5)}, "flip: probability must be between 0 and 1, not 1.5"},
		{"flip", Args{"probability": Uniform(0, 1)}, "flip: probability must be one number, not the range [0, 1]"},
		{"random-crop", Args{}, "random-crop: padding is missing"},
		{"random-crop", Args{"padding": Fixed(0)}, "random-crop: padding must be above 0 and at most 1, not 0"},
		{"gaussian-blur", Args{"sigma": Fixed(0)}, "gaussian-blur: sigma must be above 0 and at most 100 pixels, not 0"},
		{"gaussian-blur", Args{"sigma": Fixed(1), "kernel": Fixed(4)}, "gaussian-blur: kernel must be an odd whole number, not 4"},
		{"gaussian-blur", Args{"sigma": Fixed(1), "kernel": Fixed(2.5)}, "gaussian-blur: kernel must be an odd whole number, not 2.5"},
		{"gaussian-noise", Args{"sigma": Fixed(0)}, "gaussian-noise: sigma must be above 0, not 0"},
		{"identity", Args{"x": Fixed(0)}, `identity: there is no parameter "x" (it takes none)`},
	} {
		k, _ := Lookup(c.kind)
		got, err := k.Make(c.args)
		if err == nil || err.Error() != c.want || got != nil {
			t.Errorf("%s %v: %v, error %v, want %s", c.kind, c.args, got, err, c.want)
		}
	}
	if _, ok := Lookup("spin"); ok {
		t.Error("Lookup of the unknown kind spin succeeds")
	}
}

// TestParamTitle checks that the title has the unit or, without one, the doc up to a semicolon.
func TestParamTitle(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]Param{
		"angle (degrees)": {Name: "angle", Doc: "counter-clockwise", Unit: "degrees"},
		"x (to the right, as a fraction of the width)": {Name: "x", Doc: "to the right, as a fraction of the width"},
		"kernel (pixels)": {Name: "kernel", Doc: "side; odd", Unit: "pixels"},
		"strength":        {Name: "strength"},
	} {
		if got := p.Title(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestParamRange(t *testing.T) {
	t.Parallel()
	inf := math.Inf(1)
	// Above excludes the minimum.
	for want, p := range map[string]Param{
		"any number":                   {Min: -inf, Max: inf},
		"at most 3":                    {Min: -inf, Max: 3},
		"at least 0 pixels":            {Max: inf, Unit: "pixels"},
		"above 0":                      {Max: inf, Above: true},
		"above 0 and at most 1":        {Max: 1, Above: true},
		"between -360 and 360 degrees": {Min: -360, Max: 360, Unit: "degrees"},
	} {
		if got := p.Range(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
