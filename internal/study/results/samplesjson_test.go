package results

import (
	"bytes"
	stdjson "encoding/json"
	"testing"

	"github.com/goccy/go-json"
	"pgregory.net/rapid"
)

// TestSamplesJSON checks that the library that writes and reads the per-sample values of a cell
// does what encoding/json does, and refuses truncated text.
func TestSamplesJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.Custom(func(t *rapid.T) statisticValues {
			return statisticValues{rapid.StringMatching(`[a-z0-9-]*`).Draw(t, "statistic"), rapid.SliceOfN(rapid.Int(), 0, 3).Draw(t, "index"), rapid.SliceOfN(rapid.Float64(), 0, 3).Draw(t, "value")}
		})
		samples := rapid.MapOfN(rapid.StringMatching(`[a-z/ é"]*`), rapid.SliceOfN(values, 0, 3), 1, 3).Draw(t, "samples")
		want, err := stdjson.Marshal(samples)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(samples)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("wrote %s, error %v; want %s", got, err, want)
		}
		var again map[string][]statisticValues
		if err := json.Unmarshal(got, &again); err != nil {
			t.Fatal(err)
		}
		if text, err := stdjson.Marshal(again); err != nil || !bytes.Equal(text, want) {
			t.Fatalf("read %s, error %v; want %s", text, err, want)
		}
		if err := json.Unmarshal(got[:rapid.IntRange(0, len(got)-1).Draw(t, "length")], &again); err == nil {
			t.Fatal("truncated text is read")
		}
	})
}
