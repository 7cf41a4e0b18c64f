package checksum

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestStudy(t *testing.T) {
	t.Parallel()
	text := "name: x\nseed: 12\n"
	sealed := Prepend(text)
	if got, err := Check(sealed); err != nil || got != text {
		t.Errorf("text %q, error %v; want %q", got, err, text)
	}
	if got, err := Check(text); err != nil || got != text {
		t.Errorf("without a checksum: %q, %v", got, err)
	}
	for _, bad := range []string{strings.Replace(sealed, "12", "13", 1), sealed[:len(sealed)-1], sealed + " ", sealed[:40]} {
		if _, err := Check(bad); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

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
		t.Errorf("without a checksum: %v", err)
	}
	for _, bad := range []string{strings.Replace(page, "12", "13", 1), page[:len(page)-1], page[:20], ""} {
		if err := CheckPage([]byte(bad)); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}
