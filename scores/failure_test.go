package scores_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noether-ml/noether/scores"
)

// TestFailureRoundTrip writes and reads a failure: the error of one measure of one model on a data
// set under a transformation. Trial counts repetitions of the random draws, and a shard is a part
// of the samples that one process measures.
func TestFailureRoundTrip(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f.json")
	want := scores.Failure{Key: "k", Model: "m", Data: "d", Transform: "tilt", Parameter: "15", Trial: 2, Measure: "seis", Layer: "conv",
		Shard: "3of16", Error: "NaN", When: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Host: "node1", Inputs: []string{"a.png"}, Log: []string{"x"}}
	if err := scores.WriteFailure(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := scores.ReadFailure(path)
	if err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("error %v; the failure that was written differs from the one that was read: %s", err, cmp.Diff(want, got))
	}
	if w := got.Describe(); w != "seis of model m on data d under tilt 15, trial 2" {
		t.Errorf("Describe returns %q, want %q", w, "seis of model m on data d under tilt 15, trial 2")
	}
	// Invalid: without the required key or error, or with an unknown field.
	for _, bad := range []string{"", "{}", `{"key": "k"}`, `{"key": "k", "error": "e", "more": 1}`} {
		if err := os.WriteFile(path, []byte(bad), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := scores.ReadFailure(path); err == nil {
			t.Errorf("%q is read as a failure", bad)
		}
	}
}
