package video

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/tensor"
)

// hashFile returns the SHA-256 of a file, in hexadecimal.
func hashFile(ctx context.Context, path string) (string, error) {
	f, err := filesys.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum, block := sha256.New(), make([]byte, 1<<20)
	for {
		n, err := f.Read(block)
		sum.Write(block[:n])
		if err == io.EOF {
			return hex.EncodeToString(sum.Sum(nil)), nil
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return "", err
		}
	}
}

// isGIF reports whether a file starts with the signature of a GIF.
func isGIF(path string) bool {
	f, err := filesys.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 6)
	_, err = io.ReadFull(bufio.NewReader(f), head)
	return err == nil && (bytes.Equal(head, []byte("GIF87a")) || bytes.Equal(head, []byte("GIF89a")))
}

// frameFiles returns the paths of the images in a folder in the natural order of their names:
// frame9 before frame10.
func frameFiles(dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range files {
		if hasExtension(e.Name(), frameExtensions) && !hidden(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, naturalOrder)
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return names, nil
}

// naturalOrder compares names, with runs of digits compared as numbers.
func naturalOrder(a, b string) int {
	order := strings.Compare(a, b)
	for a != "" && b != "" {
		p, q := leadingDigits(a), leadingDigits(b)
		if p > 0 && q > 0 {
			x, y := strings.TrimLeft(a[:p], "0"), strings.TrimLeft(b[:q], "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
				return c
			}
			a, b = a[p:], b[q:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), order)
}

// leadingDigits returns the number of digits at the start of a text.
func leadingDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// folderClip returns the clip whose frames are the images in a folder.
func folderClip(ctx context.Context, dir string) (clip, error) {
	files, err := frameFiles(dir)
	if err != nil {
		return clip{}, err
	}
	folder, err := dataset.OpenFolder(ctx, dataset.FolderOptions{Dir: dir, Layout: "flat"})
	if err != nil {
		return clip{}, err
	}
	indices := map[string]int{}
	for i := range folder.Len() {
		indices[folder.Describe(i).Name] = i
	}
	return clip{name: filepath.Base(dir), frames: func(ctx context.Context) iter.Seq2[tensor.Tensor, error] {
		return func(yield func(tensor.Tensor, error) bool) {
			for _, file := range files {
				i, ok := indices[filepath.Base(file)]
				if !ok {
					yield(tensor.Tensor{}, fmt.Errorf("%s no longer exists", filepath.Base(file)))
					return
				}
				s, err := folder.At(ctx, i, dataset.Frame{}) // the zero Frame: the image as it is
				if !yield(s.Input, err) || err != nil {
					return
				}
			}
		}
	}}, nil
}
