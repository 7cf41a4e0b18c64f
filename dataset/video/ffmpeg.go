package video

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/noether-ml/noether/tensor"
)

// envFFmpeg names the environment variable that holds the path of the ffmpeg program.
const envFFmpeg = "NOETHER_FFMPEG"

// findFFmpeg returns the path of the ffmpeg program: explicit if it is not empty, otherwise the
// value of NOETHER_FFMPEG, otherwise the one in the search path.
func findFFmpeg(explicit string) (string, error) {
	path, err := exec.LookPath(cmp.Or(explicit, os.Getenv(envFFmpeg), "ffmpeg"))
	if err != nil {
		return "", fmt.Errorf("the ffmpeg program, which decodes videos, was not found: install it (Debian: apt-get install ffmpeg; macOS: brew install ffmpeg) or set %s to its path; animated GIFs and folders of frames do not need it", envFFmpeg)
	}
	return path, nil
}

// videoClip returns a clip of a video file, which ffmpeg decodes into a pipe of PPM images. ffmpeg
// is the path of the program; "": see findFFmpeg.
func videoClip(path, ffmpeg string) (clip, error) {
	program, err := findFFmpeg(ffmpeg)
	if err != nil {
		return clip{}, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return clip{name: filepath.Base(path), frames: func(ctx context.Context) iter.Seq2[tensor.Tensor, error] {
		return func(yield func(tensor.Tensor, error) bool) {
			stopped := false
			err := decode(ctx, program, path, func(t tensor.Tensor) bool {
				stopped = !yield(t, nil)
				return !stopped
			})
			if err != nil && !stopped {
				yield(tensor.Tensor{}, err)
			}
		}
	}}, nil
}

// decode runs ffmpeg and calls yield with every frame of the first video stream, 3 x h x w, without
// changing the frame rate. It stops without an error if yield returns false.
func decode(ctx context.Context, program, path string, yield func(tensor.Tensor) bool) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	cmd := exec.CommandContext(running, program, "-nostdin", "-v", "error", "-xerror", "-protocol_whitelist", "file,pipe",
		"-i", "file:"+path, "-map", "0:v:0", "-fps_mode", "passthrough", "-sws_flags", "accurate_rnd+full_chroma_int+bitexact",
		"-pix_fmt", "rgb24", "-f", "image2pipe", "-c:v", "ppm", "pipe:1")
	var stderrTail tail
	cmd.Stderr = &stderrTail
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", program, err)
	}
	n, more, err := readImages(bufio.NewReaderSize(out, 1<<20), yield)
	if err != nil || !more {
		stop() // ends the program
	}
	exitErr := cmd.Wait()
	switch {
	case !more:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case exitErr != nil || err != nil || n == 0:
		return fmt.Errorf("ffmpeg failed after frame %d: %s", n, cmp.Or(stderrTail.lastLine(path), errorText(err), errorText(exitErr), "it has no images"))
	}
	return nil
}

// errorText returns the message of an error; "" for nil.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// readImages reads PPM images of 8 bits per channel to the end and returns their number. more is
// false if yield returned false.
func readImages(r *bufio.Reader, yield func(tensor.Tensor) bool) (n int, more bool, err error) {
	for {
		t, err := readPPM(r)
		if errors.Is(err, io.EOF) {
			return n, true, nil
		}
		if err != nil {
			return n, true, err
		}
		n++
		if !yield(t) {
			return n, false, nil
		}
	}
}

// maxFrame is the largest number of pixels of a frame: slightly more than 15360 x 8640.
const maxFrame = 1 << 27

// readPPM reads an image, 3 x h x w with values in [0, 1]. It returns io.EOF if nothing is left.
func readPPM(r *bufio.Reader) (tensor.Tensor, error) {
	if _, err := r.Peek(1); err != nil {
		return tensor.Tensor{}, io.EOF
	}
	var w, h, maxVal int
	if _, err := fmt.Fscanf(r, "P6\n%d %d\n%d\n", &w, &h, &maxVal); err != nil {
		return tensor.Tensor{}, fmt.Errorf("invalid image header: %w", err)
	}
	if w < 1 || h < 1 || w > maxFrame/h || maxVal != 255 {
		return tensor.Tensor{}, fmt.Errorf("unsupported image of %d x %d pixels with values up to %d: at most %d pixels, with values up to 255, are supported", w, h, maxVal, maxFrame)
	}
	// Read in pieces, so that a wrong header costs no more memory than the data that follow it.
	var raw bytes.Buffer
	if n, err := io.CopyN(&raw, r, int64(3*w*h)); err != nil {
		return tensor.Tensor{}, fmt.Errorf("the image of %d bytes ends after %d", 3*w*h, n)
	}
	t := tensor.New(3, h, w)
	for i, pix := 0, raw.Bytes(); i < w*h; i++ {
		for c := range 3 {
			t.Data[c*w*h+i] = float32(pix[3*i+c]) / 255
		}
	}
	return t, nil
}

// A tail keeps the end of a program's output.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	const maxBytes = 4 << 10
	t.text = append(t.text, p...)
	if extra := len(t.text) - maxBytes; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

// logPrefix matches the prefix of a line of ffmpeg: "[h264 @ 0x563cb4490b00] ".
var logPrefix = regexp.MustCompile(`^(\[[^\]]* @ 0x[0-9a-f]+\] )+`)

// lastLine returns the last line without its prefix and without the path of the video, whose name
// callers put before the error.
func (t *tail) lastLine(path string) string {
	// The rest is advice on calling ffmpeg.
	if strings.Contains(string(t.text), "matches no streams") {
		return "it has only audio or subtitles and no images"
	}
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	line := strings.ReplaceAll(lines[len(lines)-1], "file:"+path+": ", "")
	return strings.TrimSpace(logPrefix.ReplaceAllString(line, ""))
}
