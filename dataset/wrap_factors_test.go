package dataset

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

// TestHSVAgreesWithNumPy checks that mean hue, saturation and value equal those that
// testdata/hsv.py computed with NumPy.
func TestHSVAgreesWithNumPy(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/hsv.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		H, W   int
		Pixels []uint8 // 3 x h x w
		Means  [3]float64
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		x := tensor.New(3, c.H, c.W)
		for k, v := range c.Pixels {
			x.Data[k] = float32(v) / 255
		}
		for k, name := range []string{"hue", "saturation", "value"} {
			got, err := factorFunctions[name](x)
			if err != nil || math.Abs(got-c.Means[k]) > 1e-9 {
				t.Errorf("case %d: mean %s is %v, want %v (%v)", i, name, got, c.Means[k], err)
			}
		}
	}
}

// ComputeFactors adds factors that it computes from the sample.
func TestComputeFactors(t *testing.T) {
	t.Parallel()
	shapes, err := OpenShapes(ShapesOptions{N: 5, Size: 16, Hue: []float64{120, 120}})
	if err != nil {
		t.Fatal(err)
	}
	src, err := ComputeFactors(shapes, []string{"value", "saturation"})
	if err != nil {
		t.Fatal(err)
	}
	if got := src.Factors(); !slices.Equal(got, []string{"hue", "rotation", "saturation", "scale", "shape", "value", "x", "y"}) || src.Fingerprint() == shapes.Fingerprint() {
		t.Errorf("factors %v", got)
	}
	s, err := src.At(t.Context(), 3, Frame{})
	if err != nil {
		t.Fatal(err)
	}
	// Describe returns a sample without its image.
	described, err := Describe(t.Context(), Limit(src, 4), 3)
	if err != nil || described.Factors["value"] != s.Factors["value"] || described.Input.Data != nil {
		t.Errorf("described as %+v, %v", described, err)
	}
	// The hue is a factor of the shapes, and the colour has full saturation and value on black. So
	// the computed mean saturation and mean value, 0 to 255, are 255 times the share of the image
	// that the shape covers. On its edges, which mix both colours, only the value is lower.
	if v := s.Factors["value"]; v < 5 || v > 100 || s.Factors["hue"] != 120 || s.Factors["saturation"] < v-1 {
		t.Errorf("factors %v", s.Factors)
	}
	for want, names := range map[string][]string{"use one of hue, level, saturation, value": {"mood"}, `a factor "hue" of their own`: {"hue"}, "is listed twice": {"value", "value"}} {
		if _, err := ComputeFactors(shapes, names); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", names, err)
		}
	}
	withLevel, err := ComputeFactors(shapes, []string{"level"}) // of audio, in dB
	if err != nil {
		t.Fatal(err)
	}
	if _, err := withLevel.At(t.Context(), 0, Frame{}); err == nil || !strings.Contains(err.Error(), "the factor is for audio") {
		t.Errorf("the level of an image: %v", err)
	}
}

// TestTones checks that the level and the pitch of generated tones agree with the factors loudness
// and pitch. The factor beats is the number of tones per second, and bright the amplitude of
// harmonics: 0 gives a sine.
func TestTones(t *testing.T) {
	t.Parallel()
	s, err := OpenTones(TonesOptions{N: 6, Rate: 8000, Length: 0.5, Seed: 1, Beats: []float64{4, 4}, Bright: []float64{0, 0}})
	if err != nil {
		t.Fatal(err)
	}
	src, err := ComputeFactors(s, nil) // no more factors than those of the source
	if err != nil {
		t.Fatal(err)
	}
	for i := range src.Len() {
		got, err := src.At(t.Context(), i, Frame{Rate: 8000, Length: 4000})
		if err != nil {
			t.Fatal(err)
		}
		f := got.Factors
		if f["pitch"] < 110 || f["pitch"] > 880 || f["loudness"] < -30 || f["loudness"] > -12 || f["beats"] != 4 || len(got.Input.Data) != 4000 {
			t.Errorf("sample %+v", f)
		}
		// Half of the time is a tone of the given loudness, the rest is silence: 3 dB less on
		// average. Each tone lasts 125 ms, and rises and falls within 5 ms.
		level, err := levelOf(got.Input)
		if err != nil || math.Abs(level-(f["loudness"]-10*math.Log10(2))) > 0.5 {
			t.Errorf("level %v of a tone of %v, %v", level, f["loudness"], err)
		}
		// The pitch, from the upward zero crossings of the first tone, without its rise and fall:
		// it has 1,000 values.
		first, last, periods := -1.0, 0.0, -1
		for k := 50; k < 900; k++ {
			if a, b := float64(got.Input.Data[k]), float64(got.Input.Data[k+1]); a < 0 && b >= 0 {
				last = float64(k) - a/(b-a)
				if first < 0 {
					first = last
				}
				periods++
			}
		}
		if hz := float64(periods) * 8000 / (last - first); math.Abs(hz/f["pitch"]-1) > 0.01 {
			t.Errorf("pitch %v of a tone of %v Hz", hz, f["pitch"])
		}
	}
	longer, err := OpenTones(TonesOptions{N: 60, Rate: 16000, Length: 2, Seed: 1, Beats: []float64{4, 4}, Bright: []float64{0, 0}})
	if err != nil || longer.Tone(3) != s.Tone(3) {
		t.Error("the factors of a tone depend on N, the rate or the length")
	}
	for want, frame := range map[string]Frame{"takes images": {Height: 3}, "the model takes 16000": {Rate: 16000}, "the model takes 5": {Length: 5}} {
		if _, err := s.At(t.Context(), 0, frame); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", frame, err)
		}
	}
	for want, o := range map[string]TonesOptions{"n is 0": {}, "n is 1000000001": {N: 1_000_000_001}, "rate 10": {N: 1, Rate: 10}, "length 100": {N: 1, Length: 100}, "pitch is": {N: 1, Pitch: []float64{1, 2}}, "below half the rate": {N: 1, Rate: 8000, Pitch: []float64{4000, 4000}}, "bright is": {N: 1, Bright: []float64{0, 2}}} {
		if _, err := OpenTones(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
