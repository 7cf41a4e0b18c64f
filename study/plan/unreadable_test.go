package plan

import (
	"errors"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/study/spec"
)

// One sample in a hundred may be unreadable; beyond that the error names a sample with what was wrong with it.
func TestTooManyUnreadable(t *testing.T) {
	t.Parallel()
	d := &Data{Entry: spec.Data{Name: "photos"}, Unreadable: &UnreadableSamples{n: 150}}
	if err := d.NoteUnreadable(&dataset.BadSample{Name: "a.png", Err: errors.New("cut short")}); err != nil {
		t.Errorf("one of 150: %v", err)
	}
	if err := d.NoteUnreadable(&dataset.BadSample{Name: "a.png", Err: errors.New("cut short")}); err != nil {
		t.Errorf("the same again: %v", err)
	}
	err := d.NoteUnreadable(&dataset.BadSample{Name: "b.png", Err: errors.New("no image")})
	if want := "data photos: 2 of 150 samples cannot be read, more than 1 %; one is b.png: no image"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
