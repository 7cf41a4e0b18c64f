package audio

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// wavOf returns a WAV file of interleaved channels with values in [-1, 1]. format is 1 for integers
// and 3 for floats; bits is the size of a value. extensible selects the header of
// WAVEFORMATEXTENSIBLE, which has the format in an extension at its end.
func wavOf(format, channels, bits, rate int, extensible bool, values ...float64) []byte {
	le := binary.LittleEndian
	var data []byte
	for _, v := range values {
		switch {
		case format == wavFloat && bits == 32:
			data = le.AppendUint32(data, math.Float32bits(float32(v)))
		case format == wavFloat:
			data = le.AppendUint64(data, math.Float64bits(v))
		case bits == 8:
			data = append(data, byte(v*128+128))
		default:
			word := le.AppendUint64(nil, uint64(int64(v*math.Pow(2, float64(bits-1)))))
			data = append(data, word[:bits/8]...)
		}
	}
	tag := format
	if extensible {
		tag = wavExtensible
	}
	head := le.AppendUint16(nil, uint16(tag))
	head = le.AppendUint16(head, uint16(channels))
	head = le.AppendUint32(head, uint32(rate))
	head = le.AppendUint32(head, uint32(rate*channels*bits/8))
	head = le.AppendUint16(head, uint16(channels*bits/8))
	head = le.AppendUint16(head, uint16(bits))
	if extensible {
		head = le.AppendUint16(head, 22) // bytes of the extension
		head = le.AppendUint16(head, uint16(bits))
		head = le.AppendUint32(head, 3) // speakers: left and right
		head = le.AppendUint16(head, uint16(format))
		// The rest of the format's GUID is the same for all formats.
		head = append(head, "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"...)
	}
	chunk := func(name string, b []byte) []byte {
		out := le.AppendUint32([]byte(name), uint32(len(b)))
		out = append(out, b...)
		if len(b)%2 == 1 {
			out = append(out, 0)
		}
		return out
	}
	// a chunk of odd length, to be skipped.
	body := append(chunk("fmt ", head), chunk("LIST", []byte("odd"))...)
	body = append(body, chunk("data", data)...)
	out := le.AppendUint32([]byte("RIFF"), uint32(4+len(body)))
	return append(append(out, "WAVE"...), body...)
}

// TestWAVOfUnknownLength checks files with a header whose writer did not know the length: they are
// read to their end. A length that is wrong by less is that of a truncated file, and one of 0 in a
// consistent header that of an empty one.
func TestWAVOfUnknownLength(t *testing.T) {
	t.Parallel()
	whole := wavOf(1, 2, 16, 8000, false, .5, .25, -.5, -.25, .125, .125)
	at := bytes.Index(whole, []byte("data")) + 4
	with := func(riff, length uint32, more ...byte) []byte {
		data := slices.Clone(whole)
		binary.LittleEndian.PutUint32(data[4:], riff)
		binary.LittleEndian.PutUint32(data[at:], length)
		return append(data, more...)
	}
	want := []float32{.375, -.375, .125}
	for name, data := range map[string][]byte{
		"sox": with(0x7FFFF024, 0x7FFFF000), "ffmpeg": with(0xFFFFFFFF, 0xFFFFFFFF), "zero": with(0, 0),
		"zero, and a header of 36 bytes": with(36, 0), "arecord": with(0x80000024, 0x80000000),
		"cut within a block": with(0x7FFFF024, 0x7FFFF000, 1, 2, 3),
	} {
		clip, err := Decode(data)
		if err != nil || !slices.Equal(clip.Wave, want) {
			t.Errorf("%s: %v, %v, want %v", name, clip.Wave, err, want)
		}
		path := filepath.Join(t.TempDir(), "x.wav")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if info, err := Probe(path); err != nil || info.Frames != 3 || info.Channels != 2 {
			t.Errorf("%s: the header is %+v, %v", name, info, err)
		}
	}
	for _, length := range []uint32{16, 0x7FFFEFFC, 0xFFFFFFFC} {
		if _, err := Decode(with(0x7FFFF024, length)); err == nil || !strings.Contains(err.Error(), "truncated: 12 of") {
			t.Errorf("a length of %d: error %v, want a truncated file", length, err)
		}
	}
	empty := append(wavOf(1, 1, 16, 8000, false), "LIST\x02\x00\x00\x00ab"...)
	binary.LittleEndian.PutUint32(empty[4:], uint32(len(empty)-8))
	if clip, err := Decode(empty); err != nil || len(clip.Wave) != 0 {
		t.Errorf("an empty file with a chunk after its data: %v, %v", clip, err)
	}
}

// TestOtherFormats checks that formats that are not read are named.
func TestOtherFormats(t *testing.T) {
	t.Parallel()
	for start, want := range map[string]string{
		"RF64\xff\xff\xff\xffWAVE": "RF64", "riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb": "W64", "FORM\x00\x00\x00\x00AIFF": "AIFF", "ID3\x03\x00\x00\x00\x00\x00\x00\xff\xfb\x90\x00": "ID3", "OggS\x00\x02\x00\x00\x00\x00\x00\x00": "Ogg",
		"\x00\x00\x00\x20ftypM4A \x00\x00": "MP4", "\xff\xf3\x84\xc4\x00\x00\x00\x00\x00\x00\x00\x00": "MP3", "\xff\xf1\x50\x80\x00\x00\x00\x00\x00\x00\x00\x00": "AAC",
		"\x1aE\xdf\xa3\x9fB\x86\x81\x01\x00\x00\x00": "WebM", "#!AMR\n\x00\x00\x00\x00\x00\x00": "AMR", "wvpk\x00\x00\x00\x00\x00\x00\x00\x00": "WavPack",
		"version https://git-lfs.github.com/spec/v1\n": "Git LFS", "<!DOCTYPE html>": "web page",
	} {
		if _, err := Decode([]byte(start)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "convert it") {
			t.Errorf("error %v, want one that names %s", err, want)
		}
		path := filepath.Join(t.TempDir(), "x.wav")
		if err := os.WriteFile(path, []byte(start), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Probe(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the header: error %v, want one that names %s", err, want)
		}
	}
}

func TestWAVFormats(t *testing.T) {
	t.Parallel()
	for _, form := range []struct{ format, bits int }{{1, 8}, {1, 16}, {1, 24}, {1, 32}, {3, 32}, {3, 64}} {
		for _, extensible := range []bool{false, true} {
			for channels, want := range map[int][]float32{
				1: {0, 0.5, -0.5, -1, 0.25, -0.125},
				2: {0.25, -0.75, 0.0625}, // the mean of both channels
			} {
				data := wavOf(form.format, channels, form.bits, 22050, extensible, 0, 0.5, -0.5, -1, 0.25, -0.125)
				got, err := Decode(data)
				if err != nil {
					t.Fatalf("%+v: %v", form, err)
				}
				if got.Rate != 22050 || !slices.Equal(got.Wave, want) {
					t.Errorf("%+v, %d channels, extensible %v: %v, want %v", form, channels, extensible, got, want)
				}
				path := filepath.Join(t.TempDir(), "a.wav")
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
				if info, err := Probe(path); err != nil || info != (Info{Rate: 22050, Channels: channels, Frames: 6 / channels}) {
					t.Errorf("%+v: %+v, %v", form, info, err)
				}
			}
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	good := wavOf(1, 1, 16, 8000, false, 0, 0.5, -0.5)
	// with overwrites bytes of the header: the format is at 20, the channels at 22, the rate at 24,
	// the bytes of a block (one value of each channel) at 32, and the bits of a value at 34.
	with := func(at int, b ...byte) []byte {
		c := slices.Clone(good)
		copy(c[at:], b)
		return c
	}
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "empty"},
		{[]byte("neither one nor the other"), "neither WAV nor FLAC"},
		{good[:len(good)-2], "truncated: 4 of 6 bytes"},
		{good[:30], "truncated"},  // within the chunk of the format
		{good[:44], "truncated"},  // before the chunk of the values
		{with(20, 6), "format 6"}, // A-law
		{with(20, 3), "16 bits"},
		{with(34, 12), "12 bits"},
		{with(22, 0), "0 channels"},
		{with(24, 0, 0, 0, 0), "rate of 0"},
		{with(24, 255, 255, 255, 255), "rate of"},
		{with(32, 3), "blocks of 3 bytes"},
		{wavOf(3, 1, 32, 8000, false, math.NaN()), "value 0 is NaN"},
		{wavOf(3, 1, 64, 8000, false, 0, math.Inf(1)), "value 1 is +Inf"},
		{wavOf(3, 1, 64, 8000, false, 0, -1e300), "value 1 is -Inf"}, // values are read as float32
		{bytes.Replace(wavOf(1, 1, 16, 8000, true, 0.5), []byte("\xaa\x00\x38"), []byte("\xab\x00\x38"), 1), "unknown identifier 0100"},
		{slices.Concat(good[:36], good[12:]), "two format chunks"},
		{append(slices.Clone(good), "data\x02\x00\x00\x00\x01\x01"...), "several parts with data"},
		{[]byte("fLaC"), "FLAC"},
	} {
		if _, err := Decode(c.data); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.20q: %v, want %q", c.data, err, c.want)
		}
	}
}

// TestWriteWAV checks that written values are read unchanged, -2 too: WriteWAV writes float32.
func TestWriteWAV(t *testing.T) {
	t.Parallel()
	want := Clip{8000, []float32{0, 0.1, -2, 1}}
	var b bytes.Buffer
	if err := WriteWAV(&b, want); err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b.Bytes())
	if err != nil || got.Rate != want.Rate || !slices.Equal(got.Wave, want.Wave) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestWriteWAV16 checks that values are rounded to 16 bits and clipped to [-1, 1].
func TestWriteWAV16(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := WriteWAV16(&b, Clip{8000, []float32{0, 0.1, -2, 1}}); err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b.Bytes())
	if err != nil || got.Rate != 8000 || !slices.EqualFunc(got.Wave, []float32{0, 0.1, -1, 1}, func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-4 }) {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(wavOf(1, 2, 24, 8000, true, 0, 0.5, -0.5, 1))
	f.Add(wavOf(3, 1, 64, 8000, false, 0, 0.5))
	for _, name := range []string{"tone16.flac", "stereo24.flac"} {
		if data, err := os.ReadFile(filepath.Join("testdata", name)); err == nil {
			f.Add(data)
			f.Add(append([]byte("ID3\x04\x00\x00\x00\x00\x00\x03abc"), data...))
		}
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "x")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		info, headerErr := Probe(path)
		clip, err := Decode(data)
		if err != nil {
			return
		}
		if clip.Rate < 1 {
			t.Errorf("rate %d", clip.Rate)
		}
		if headerErr != nil || info.Rate != clip.Rate || info.Frames != len(clip.Wave) {
			t.Errorf("%d values at %d Hz, and the header states %+v, error %v", len(clip.Wave), clip.Rate, info, headerErr)
		}
		for i, v := range clip.Wave {
			if v-v != 0 { // infinite or NaN
				t.Fatalf("value %d is %v", i, v)
			}
		}
	})
}
