package report

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Picture is a contact sheet for a report: inputs beside their transforms, inversions, filters, gratings.
type Picture struct {
	PictureText
	Width, Height int
	PNG           []byte
}

// A PictureText is what the file NAME.json beside a picture NAME.png says of it. All of it may be absent.
type PictureText struct {
	Title   string `json:"title"`
	Caption string `json:"caption"` // one or two sentences: what is to be seen
	Alt     string `json:"alt"`     // for those who do not see it; else the caption
	Measure string `json:"measure"` // that it belongs to
	Model   string `json:"model"`   // that it was made with
}

// Bounds of what a page holds in pictures.
const (
	mostPictures     = 60
	mostPictureBytes = 4 << 20  // of one
	allPictureBytes  = 12 << 20 // of all
	mostPixels       = 50e6     // of one
)

// readPictures reads the pictures of a run folder, pictures/*.png and pictures/*/*.png, in the order of their names. What is
// no picture, or is too large for a page, is left out, with a line that says so.
func readPictures(root *os.Root) (pictures []Picture, notes []string, err error) {
	var names []string
	for _, pattern := range []string{"*.png", "*/*.png"} {
		found, err := fs.Glob(root.FS(), "pictures/"+pattern)
		if err != nil {
			return nil, nil, fmt.Errorf("listing the pictures: %w", err)
		}
		names = append(names, found...)
	}
	room := allPictureBytes
	for _, name := range names {
		p, err := readPicture(root, name)
		switch {
		case err != nil:
			notes = append(notes, err.Error())
		case len(pictures) == mostPictures || len(p.PNG) > room:
			notes = append(notes, fmt.Sprintf("%s is left out of the report, which holds at most %d pictures and %s of them", name, mostPictures, mebibytes(allPictureBytes)))
		default:
			room -= len(p.PNG)
			pictures = append(pictures, p)
		}
	}
	return pictures, notes, nil
}

func readPicture(root *os.Root, name string) (Picture, error) {
	info, err := root.Stat(name)
	if err != nil {
		return Picture{}, fmt.Errorf("reading %s: %w", name, err)
	}
	if info.Size() > mostPictureBytes {
		return Picture{}, fmt.Errorf("%s is left out of the report: it has %s, more than %s", name, mebibytes(info.Size()), mebibytes(mostPictureBytes))
	}
	p := Picture{}
	if p.PNG, err = root.ReadFile(name); err != nil {
		return Picture{}, fmt.Errorf("reading %s: %w", name, err)
	}
	header, err := png.DecodeConfig(bytes.NewReader(p.PNG))
	if err != nil {
		return Picture{}, fmt.Errorf("reading %s: %w", name, err)
	}
	if p.Width, p.Height = header.Width, header.Height; p.Width*p.Height > mostPixels {
		return Picture{}, fmt.Errorf("%s is left out of the report: %d x %d pixels are too many", name, p.Width, p.Height)
	}
	text, err := root.ReadFile(strings.TrimSuffix(name, ".png") + ".json")
	if err == nil {
		err = json.Unmarshal(text, &p.PictureText)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Picture{}, fmt.Errorf("reading the caption of %s: %w", name, err)
	}
	if p.Title == "" {
		p.Title = strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(name), "pictures/"), ".png")
	}
	return p, nil
}

type packedPicture struct {
	Title   string `json:"title"`
	Caption string `json:"caption"`
	Alt     string `json:"alt"`
	Measure string `json:"measure"`
	Model   string `json:"model"`
	Width   int    `json:"width"`
	Height  int    `json:"height"`
	PNG     string `json:"png"`
}

func packPictures(pictures []Picture) []packedPicture {
	out := make([]packedPicture, len(pictures))
	for i, p := range pictures {
		out[i] = packedPicture{printable(p.Title), printable(p.Caption), printable(p.Alt), printable(p.Measure), printable(p.Model), p.Width, p.Height,
			base64.StdEncoding.EncodeToString(p.PNG)}
		if out[i].Alt == "" {
			out[i].Alt = out[i].Caption
		}
		if out[i].Alt == "" {
			out[i].Alt = out[i].Title
		}
	}
	return out
}
