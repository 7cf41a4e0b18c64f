package results

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/plainjson"
)

// TestSamples checks that values by sample are written as encoding/json writes them and read again,
// and that truncated text is refused.
func TestSamples(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.Custom(func(t *rapid.T) statisticValues {
			return statisticValues{
				rapid.StringMatching(`[a-z0-9-]*`).Draw(t, "statistic"),
				rapid.SliceOfN(rapid.Int(), 0, 3).Draw(t, "index"),
				append([]float64{}, rapid.SliceOfN(rapid.Float64(), 0, 3).Draw(t, "value")...),
			}
		})
		samples := rapid.MapOfN(rapid.StringMatching(`[a-z/ é"]*`), rapid.SliceOfN(values, 1, 3), 1, 3).Draw(t, "samples")
		want, err := json.Marshal(samples)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, '\n')
		got := plainjson.Append(nil, codeSamples(samples))
		if !bytes.Equal(got, want) {
			t.Fatalf("wrote %s, want %s", got, want)
		}
		again := map[string][]statisticValues{}
		if err := plainjson.Read(got, codeSamples(again)); err != nil {
			t.Fatal(err)
		}
		if text := plainjson.Append(nil, codeSamples(again)); !bytes.Equal(text, want) {
			t.Fatalf("read %s, want %s", text, want)
		}
		cut := got[:rapid.IntRange(0, len(got)-1).Draw(t, "length")]
		if plainjson.Read(cut, codeSamples(map[string][]statisticValues{})) == nil {
			t.Fatal("truncated text is read")
		}
	})
}
