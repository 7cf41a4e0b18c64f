package probe

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/audio"
	"github.com/noether-ml/noether/internal/features"
)

// TestFactorKinds checks that a probe (a small network trained to predict) gets a factor (a known
// property of a sample) whose values are names, such as speakers, as classes, and a factor of
// numbers as a quantity. The factors are in the names of audio files.
func TestFactorKinds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"anna_1.wav", "bela_2.wav", "anna_3.wav"} {
		var b bytes.Buffer
		if err := audio.WriteWAV(&b, audio.Clip{Rate: 8000, Wave: make([]float32, 8)}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	src, err := dataset.OpenAudio(t.Context(), dataset.AudioOptions{Dir: dir, Pattern: "{speaker}_{take}.wav"})
	if err != nil {
		t.Fatal(err)
	}
	// In the order of names: anna_1, anna_3, bela_2. The speakers are coded 0 and 1.
	// Label -1 is none.
	s := &features.Samples{Positions: []int{0, 1, 2}, Label: []int{-1, -1, -1}, Factors: map[string][]float64{"speaker": {0, 0, 1}, "take": {1, 3, 2}}}
	var all Targets
	speaker, err := all.target(src, s, "speaker")
	if err != nil || speaker.classes != 2 || !slices.Equal(speaker.class, []int{0, 0, 1}) {
		t.Errorf("target of speaker = %+v, %v, want 2 classes", speaker, err)
	}
	take, err := all.target(src, s, "take")
	if err != nil || take.classes != 0 || !slices.Equal(take.value, []float64{1, 3, 2}) {
		t.Errorf("target of take = %+v, %v, want numbers", take, err)
	}
}
