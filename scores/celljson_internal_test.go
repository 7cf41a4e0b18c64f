package scores

import (
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/measure"
)

// TestMarshalCell checks that Cell.MarshalJSON, which uses a faster library, returns the text of
// encoding/json for the same cell. Drawn holds parameters that were drawn at random;
// replicates are values without some of the samples. The sampled numbers lie around 1e-6 and 1e21,
// where encoding/json begins to write exponents; the sampled texts have characters that it escapes.
func TestMarshalCell(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1e-6, 9e-7, 1e-7, 1.5e-9, 1e-10, 1e20, 1e21, -1e22, 1e100, math.NaN(), math.Inf(1), math.Inf(-1)}))
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a<b", "x\"y", "\x7f", "\xff"}))
		c := Cell{Model: text.Draw(t, "model"), OtherModel: text.Draw(t, "other"), Data: text.Draw(t, "data"), Transform: text.Draw(t, "transform"),
			Parameter: text.Draw(t, "parameter"), Drawn: text.Draw(t, "drawn"), Trial: rapid.IntRange(-1, 3).Draw(t, "trial"), Measure: text.Draw(t, "measure"),
			PeakMemory: rapid.Int64Range(0, 2).Draw(t, "memory")}
		for range rapid.IntRange(0, 2).Draw(t, "layers") {
			l := Layer{Name: text.Draw(t, "layer"), Depth: rapid.IntRange(-1, 9).Draw(t, "depth"), Other: text.Draw(t, "layer")}
			for range rapid.IntRange(0, 2).Draw(t, "scores") {
				s := measure.Score{Statistic: text.Draw(t, "statistic"), Variant: text.Draw(t, "variant"), Parameter: text.Draw(t, "parameter"), Factor: text.Draw(t, "factor"),
					Value: number.Draw(t, "value"), Low: number.Draw(t, "low"), High: number.Draw(t, "high"), Null: number.Draw(t, "null"), Min: number.Draw(t, "min"),
					Max: number.Draw(t, "max"), N: rapid.IntRange(0, 9).Draw(t, "n"), Warnings: rapid.SliceOfN(text, 0, 2).Draw(t, "warnings")}
				s.Spread, s.Freedom = float64(rapid.IntRange(0, 2).Draw(t, "spread"))/3, float64(rapid.IntRange(0, 2).Draw(t, "freedom"))
				for range rapid.IntRange(0, 2).Draw(t, "replicates") {
					s.Replicates = append(s.Replicates, measure.Replicate{Value: number.Draw(t, "replicate"), Left: rapid.IntRange(0, 9).Draw(t, "left")})
				}
				l.Scores = append(l.Scores, s)
			}
			c.Layers = append(c.Layers, l)
		}
		want, err := json.Marshal(encodeCell(c))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := c.MarshalJSON(); string(got) != string(want) {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}
