package transform

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// A Kind describes a kind of transform, from which study files are parsed and schema and documents
// made.
type Kind struct {
	Name   string  // as in study files, for instance "gaussian-blur"
	Doc    string  // one sentence
	Params []Param // in the order in which they are drawn
	Audio  bool    // whether it applies to audio only
	// Short lists the parameters that a bare value sets, as in `rotate: 30` or
	// `translate: [-0.1, 0.1]`. It may be empty.
	Short []string

	build func(v values) (Transform, error) // from arguments that Make has checked
}

// NewKind returns a kind whose transforms build makes from checked arguments.
func NewKind(k Kind, build func(args Args) (Transform, error)) Kind {
	k.build = func(v values) (Transform, error) { return build(Args(v)) }
	return k
}

// A Param is a parameter: a Distribution of a number, one of several words, Options, or any Text.
type Param struct {
	Name     string   // as in study files
	Doc      string   // what it is, a phrase without a full stop
	Unit     string   // of a number, for instance "degrees"; "": none
	Options  []string // the words to choose from; nil for a number
	Text     bool     // it takes any text
	Default  Arg      // nil: no default; Doc describes the behaviour if the parameter is not set
	Required bool
	Min, Max float64 // of a number, both included; infinite where there is no bound
	Above    bool    // Min is excluded
	Constant bool    // a number that is not drawn at random: it takes one value, not a range
}

// An Arg is the argument of a parameter: a Distribution for a number, an Option for a word.
type Arg interface{ arg() }

// An Option is an argument that is a word.
type Option string

func (Option) arg() {}

// Args maps names of parameters to arguments. A missing parameter has its default.
type Args map[string]Arg

// Kinds returns every kind of transform that a study file can name. A Sequence combines them.
func Kinds() []Kind {
	return []Kind{
		identityKind(),
		rotateKind(), translateKind(), scaleKind(), shearKind(), affineKind(), flipKind(), cropKind(), randomCropKind(), trivialAugmentKind(),
		grayscaleKind(), brightnessKind(), contrastKind(), gaussianBlurKind(),
		gaussianNoiseKind(), replaceKind(), corruptKind(),
		hueKind(), saturationKind(), jpegKind(),
		timeStretchKind(), pitchShiftKind(), whiteNoiseKind(), reverbKind(), gainKind(), lowPassKind(), highPassKind(),
	}
}

// neutral has, by kind, the value of the parameter of the short form at which an image or audio
// stays as it is, or is closest to that. Other kinds have no such value.
var neutral = map[string]float64{
	"rotate": 0, "translate": 0, "scale": 1, "shear": 0, "brightness": 1, "contrast": 1, "saturation": 1, "hue": 0,
	"gaussian-blur": 0, "gaussian-noise": 0, "corrupt": 0, "jpeg": 100,
	"time-stretch": 1, "pitch-shift": 0, "gain": 0, "reverb": 0, "python": 0,
}

// Neutral returns the value of the parameter that a short form sets, at which a transformation of
// the named kind changes nothing. ok is false if there is none.
func Neutral(kind string) (value float64, ok bool) {
	value, ok = neutral[kind]
	return value, ok
}

// Strongest returns the value of the parameter that a short form sets, at which a transformation of
// the named kind changes its input most. ok is false if there is none, or no neutral value.
func Strongest(kind string) (value float64, ok bool) {
	k, found := Lookup(kind)
	none, known := Neutral(kind)
	if !found || !known || len(k.Short) == 0 {
		return 0, false
	}
	p, _ := k.Param(k.Short[0])
	switch {
	case kind == "rotate":
		return 180, true
	case p.Max > none:
		return p.Max, !math.IsInf(p.Max, 1)
	}
	return p.Min, !math.IsInf(p.Min, -1)
}

// Lookup returns the kind of a name.
func Lookup(name string) (Kind, bool) {
	kinds := Kinds()
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return kinds[i], true
}

// Param returns the parameter of a name.
func (k Kind) Param(name string) (Param, bool) {
	i := slices.IndexFunc(k.Params, func(p Param) bool { return p.Name == name })
	if i < 0 {
		return Param{}, false
	}
	return k.Params[i], true
}

// Make returns the transform of this kind with the given parameters, each checked against its
// range. An unknown parameter is an error, and so is a missing one that is required.
func (k Kind) Make(args Args) (Transform, error) {
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if _, ok := k.Param(name); !ok {
			return nil, fmt.Errorf("%s: there is no parameter %q (%s)", k.Name, name, k.takes())
		}
	}
	v := values{}
	for _, p := range k.Params {
		a, ok := args[p.Name]
		switch {
		case ok:
			if err := p.Check(a); err != nil {
				return nil, fmt.Errorf("%s: %w", k.Name, err)
			}
			v[p.Name] = a
		case p.Required:
			return nil, fmt.Errorf("%s: %s is missing", k.Name, p.Name)
		case p.Default != nil:
			v[p.Name] = p.Default
		}
	}
	t, err := k.build(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.Name, err)
	}
	return t, nil
}

// takes lists the parameters, for an error.
func (k Kind) takes() string {
	if len(k.Params) == 0 {
		return "it takes none"
	}
	names := make([]string, len(k.Params))
	for i, p := range k.Params {
		names[i] = p.Name
	}
	return "it takes " + strings.Join(names, ", ")
}

// maxMagnitude bounds the magnitude of all parameters, so that float32 does not overflow.
const maxMagnitude = 1e30

// Check returns an error if the parameter cannot be set to a.
func (p Param) Check(a Arg) error {
	switch a := a.(type) {
	case Distribution:
		return p.checkDistribution(a)
	case Option:
		return p.checkOption(a)
	}
	return fmt.Errorf("%s has no value: it must be a number, a range or a word", p.Name)
}

func (p Param) checkOption(o Option) error {
	if p.Text {
		return nil
	}
	if p.Options == nil {
		return fmt.Errorf("%s must be a number, not %q", p.Name, string(o))
	}
	if !slices.Contains(p.Options, string(o)) {
		return fmt.Errorf("%s must be %s, not %q", p.Name, strings.Join(p.Options, " or "), string(o))
	}
	return nil
}

func (p Param) checkDistribution(d Distribution) error {
	if p.Text {
		return fmt.Errorf("%s must be a text, not %v: write it in quotes", p.Name, d)
	}
	if p.Options != nil {
		return fmt.Errorf("%s must be %s, not %v", p.Name, strings.Join(p.Options, " or "), d)
	}
	for _, v := range []float64{d.Low, d.High} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s must be a finite number, not %s", p.Name, number(v))
		}
		if math.Abs(v) > maxMagnitude {
			return fmt.Errorf("%s must be at most %s in magnitude, not %s", p.Name, number(maxMagnitude), number(v))
		}
		if v < p.Min || v > p.Max || p.Above && v == p.Min {
			return fmt.Errorf("%s must be %s, not %s", p.Name, p.Range(), number(v))
		}
	}
	if d.Low > d.High {
		return fmt.Errorf("%s: the range %v has its ends exchanged", p.Name, d)
	}
	if p.Constant && !d.Fixed() {
		return fmt.Errorf("%s must be one number, not the range %v", p.Name, d)
	}
	return nil
}

// Range describes the numbers allowed: "between -360 and 360 degrees", "above 0", "any number".
func (p Param) Range() string {
	var s string
	low, high := !math.IsInf(p.Min, -1), !math.IsInf(p.Max, 1)
	switch {
	case !low && !high:
		return "any number"
	case low && high && p.Above:
		s = fmt.Sprintf("above %s and at most %s", number(p.Min), number(p.Max))
	case low && high:
		s = fmt.Sprintf("between %s and %s", number(p.Min), number(p.Max))
	case low && p.Above:
		s = "above " + number(p.Min)
	case low:
		s = "at least " + number(p.Min)
	default:
		s = "at most " + number(p.Max)
	}
	if p.Unit != "" {
		s += " " + p.Unit
	}
	return s
}

// Title returns a number's name for an axis: "angle (degrees)", or without a unit "x (to the right,
// as a fraction of the width)".
func (p Param) Title() string {
	doc, _, _ := strings.Cut(p.Doc, ";")
	if doc = cmp.Or(p.Unit, doc); doc == "" || doc == p.Name {
		return p.Name
	}
	return p.Name + " (" + doc + ")"
}

// values are the arguments of a Kind's build function: checked, with defaults filled in.
type values map[string]Arg

func (v values) dist(name string) Distribution {
	d, _ := v[name].(Distribution)
	return d
}

func (v values) has(name string) bool { return v[name] != nil }

func (v values) option(name string) string {
	o, _ := v[name].(Option)
	return string(o)
}
