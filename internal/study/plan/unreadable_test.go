package plan

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/study/spec"
)

// TestTooManyUnreadable checks that up to half of the samples may be unreadable, and none with
// strict. Beyond that the error names the unreadable samples. NoteUnreadable records a sample that
// could not be read; its last argument, the size and format in which a model takes inputs, plays no
// part here.
func TestTooManyUnreadable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n, bad int // numbers of samples, and of unreadable ones
		strict bool
		want   string // the error; "": none
	}{
		{150, 1, false, ""},
		{12, 2, false, ""},
		{12, 6, false, ""},
		{400, 200, false, ""},
		{3, 2, false, "data photos: 2 of 3 samples cannot be read, more than half: 0.png: cut short; 1.png: cut short"},
		{1, 1, false, "data photos: 1 of 1 samples cannot be read, more than half: 0.png: cut short"},
		{400, 1, true, "data photos: 1 of 400 samples cannot be read: 0.png: cut short"},
	} {
		d := &Data{Entry: spec.Data{Name: "photos"}, Unreadable: &UnreadableSamples{n: c.n, strict: c.strict}}
		var err error
		for i := range c.bad {
			bad := &dataset.BadSample{Name: fmt.Sprintf("%d.png", i), Err: errors.New("cut short")}
			err = d.NoteUnreadable(t.Context(), bad, dataset.Frame{})
			// A sample that is noted twice counts once.
			if err = errors.Join(err, d.NoteUnreadable(t.Context(), bad, dataset.Frame{})); c.want == "" && err != nil {
				t.Errorf("%d of %d: %v", i+1, c.n, err)
			}
		}
		if c.want != "" && (err == nil || err.Error() != c.want+"\n"+c.want) {
			t.Errorf("%d of %d: %v, want %s", c.bad, c.n, err, c.want)
		}
	}
}

// TestUnreadableSamplesAreFound checks that an error also names unreadable samples that have not
// been noted (see NoteUnreadable), up to 20 in all. It reads the samples to find them.
func TestUnreadableSamplesAreFound(t *testing.T) {
	t.Parallel()
	for bad, more := range map[int]string{5: "", 30: "; there may be more"} {
		dir := t.TempDir()
		for i := range bad {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.png", i)), []byte("no image"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		source, err := dataset.OpenFolder(t.Context(), dataset.FolderOptions{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		d := &Data{Entry: spec.Data{Name: "photos"}, Source: source, Order: Order{n: bad, list: dataset.Indices(bad)}, Unreadable: &UnreadableSamples{n: bad}}
		for i := range bad/2 + 1 {
			err = d.NoteUnreadable(t.Context(), &dataset.BadSample{Name: fmt.Sprintf("%02d.png", i), Err: errors.New("no image")}, dataset.Frame{})
		}
		named := min(bad, 20)
		prefix, last := fmt.Sprintf("data photos: %d of %d samples cannot be read", named, bad), fmt.Sprintf("; %02d.png: ", named-1)
		if err == nil || !strings.HasPrefix(err.Error(), prefix) || !strings.Contains(err.Error(), last) || strings.Count(err.Error(), ".png") != named || !strings.HasSuffix(err.Error(), more) {
			t.Errorf("%d unreadable samples: %v, want %d names", bad, err, named)
		}
	}
}

func TestUnreadableSampleIsLogged(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	d := &Data{Entry: spec.Data{Name: "photos"}, Unreadable: &UnreadableSamples{n: 1000, data: "photos", log: slog.New(slog.NewTextHandler(&out, nil))}}
	for range 2 {
		if err := d.NoteUnreadable(t.Context(), &dataset.BadSample{Name: "3.png", Err: errors.New("cut short")}, dataset.Frame{}); err != nil {
			t.Fatal(err)
		}
	}
	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `data=photos sample=3.png error="cut short"`) {
		t.Errorf("the log is %q, want one line with the sample and its error", text)
	}
}
