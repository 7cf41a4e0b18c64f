package results

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// TestScanSamples checks that appendSamples writes what encoding/json writes, and that scanSamples
// reads it and refuses truncated text.
func TestScanSamples(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.Custom(func(t *rapid.T) statisticValues {
			return statisticValues{rapid.StringMatching(`[a-z0-9-]*`).Draw(t, "statistic"), rapid.SliceOfN(rapid.Int(), 0, 3).Draw(t, "index"), rapid.SliceOfN(rapid.Float64(), 0, 3).Draw(t, "value")}
		})
		samples := rapid.MapOfN(rapid.StringMatching(`[a-z/ é"]*`), rapid.SliceOfN(values, 0, 3), 1, 3).Draw(t, "samples")
		want, err := json.Marshal(samples)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, '\n')
		got := appendSamples(nil, samples)
		if !bytes.Equal(got, want) {
			t.Fatalf("wrote %s, want %s", got, want)
		}
		if again, ok := scanSamples(got); ok {
			if text := appendSamples(nil, again); !bytes.Equal(text, want) && !bytes.Contains(want, []byte("[]")) { // an empty list may become null
				t.Fatalf("read %s, want %s", text, want)
			}
		} else if !bytes.Contains(want, []byte(`\"`)) && !bytes.Contains(want, []byte("null")) {
			t.Fatalf("%s is not read", want)
		}
		if _, ok := scanSamples(got[:rapid.IntRange(0, len(got)-1).Draw(t, "length")]); ok {
			t.Fatal("truncated text is read")
		}
	})
}

// FuzzScanSamples checks that what scanSamples reads is what encoding/json reads.
func FuzzScanSamples(f *testing.F) {
	f.Add([]byte(`{"":[{"Statistic":"a","Index":[0,2],"Value":[0.5,-1e-7]},{"Statistic":"b","Value":[]}]}` + "\n"))
	f.Add([]byte(`{"a":[],"a":[{"Statistic":"a","Value":[1]}]}` + "\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		got, ok := scanSamples(content)
		if !ok {
			return
		}
		var want map[string][]statisticValues
		if err := json.Unmarshal(content, &want); err != nil {
			t.Fatalf("%q is read: %v", content, err)
		}
		if got, want := appendSamples(nil, got), appendSamples(nil, want); !bytes.Equal(got, want) {
			t.Fatalf("read %s, want %s", got, want)
		}
	})
}
