package dataset

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzNaNReader checks that what a nanReader returns does not depend on how much is read at a time,
// is valid where null in place of NaN is, and that its offsets are those of the file.
func FuzzNaNReader(f *testing.F) {
	f.Add(`{"a": NaN, "b": [Infinity, -Infinity, 1e5, -2], "c": "NaN \" -Infinity"}`)
	f.Add(`[NaN,NaN,"\\",NaN]`)
	f.Add(`{"a": "\`)
	f.Fuzz(func(t *testing.T, text string) {
		whole := newNaNReader(strings.NewReader(text))
		got, err := io.ReadAll(whole)
		if err != nil {
			t.Fatal(err)
		}
		if single, err := io.ReadAll(iotest.OneByteReader(newNaNReader(strings.NewReader(text)))); err != nil || !bytes.Equal(single, got) {
			t.Errorf("%q read at once and %q by bytes, error %v", got, single, err)
		}
		if json.Valid([]byte(text)) && string(got) != text {
			t.Errorf("valid JSON %q became %q", text, got)
		}
		if end := whole.inFile(int64(len(got))); end != int64(len(text)) {
			t.Errorf("the end of %q is at %d of the file, want %d", got, end, len(text))
		}
	})
}

// FuzzChallenge checks that any text is an error of one line or has a class for each line.
func FuzzChallenge(f *testing.F) {
	f.Add("1\n1000\n 7 \n")
	f.Fuzz(func(t *testing.T, text string) {
		synsets, err := challengeSynsets(strings.NewReader(text))
		if err == nil && len(synsets) != len(strings.Fields(text)) || err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%d classes, error %v", len(synsets), err)
		}
	})
}

// FuzzTranscript checks that any text is an error or has at least one word for each utterance.
func FuzzTranscript(f *testing.F) {
	f.Add("84-121123-0000 GO DO YOU HEAR\n84-121123-0001 BUT\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(filepath.Join(dir, "a.trans.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		words := map[string]int{}
		if err := (&Audio{fileList: fileList{dir: dir}}).readTranscript("a.trans.txt", words); err != nil {
			return
		}
		for name, n := range words {
			if n < 1 {
				t.Errorf("%q has %d words", name, n)
			}
		}
	})
}

// FuzzFrames checks that the headers of GIF, TIFF and animated WebP that this package reads itself
// crash on no data.
func FuzzFrames(f *testing.F) {
	for _, name := range []string{"animated.webp", "frame-smaller.gif", "orientation-6.tif"} {
		data, err := os.ReadFile(filepath.Join("testdata", "images", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if frame, ok, err := firstWebPFrame(data); ok && err == nil && len(frame.still) < 20 {
			t.Errorf("a frame of %d bytes", len(frame.still))
		}
		if h, err := parseGIF(data); err == nil && len(h.palette) < 256 {
			t.Errorf("a palette of %d colours", len(h.palette))
		}
		tiffTags(data)
		if err := refusedTIFF(data); err != nil && strings.Contains(err.Error(), "\n") {
			t.Error(err)
		}
	})
}
