package checksum

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// TestStudy checks the checksum in the first line of a study, a YAML text that says what noether
// measures.
func TestStudy(t *testing.T) {
	t.Parallel()
	text := "name: x\nseed: 12\n"
	withChecksum := Prepend(text)
	if got, err := Check(withChecksum); err != nil || got != text {
		t.Errorf("text %q, error %v; want %q", got, err, text)
	}
	if got, err := Check(text); err != nil || got != text {
		t.Errorf("a study without a checksum: text %q, error %v; want %q", got, err, text)
	}
	for _, bad := range []string{strings.Replace(withChecksum, "12", "13", 1), withChecksum[:len(withChecksum)-1], withChecksum + " ", withChecksum[:40]} {
		if _, err := Check(bad); err == nil {
			t.Errorf("the altered study %q: no error", bad)
		}
	}
}

// TestPage checks the checksum at the end of an HTML page. A page without one must end in </html>.
func TestPage(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := NewPageWriter(&b)
	io.WriteString(w, "<!doctype html>\n<html>12")
	io.WriteString(w, "</html>\n")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if err := CheckPage(b.Bytes()); err != nil {
		t.Error(err)
	}
	if err := CheckPage([]byte("<html></html>\n")); err != nil {
		t.Errorf("a page without a checksum: %v", err)
	}
	for _, bad := range []string{strings.Replace(page, "12", "13", 1), page[:len(page)-1], page[:20], ""} {
		if err := CheckPage([]byte(bad)); err == nil {
			t.Errorf("the altered page %q: no error", bad)
		}
	}
}
