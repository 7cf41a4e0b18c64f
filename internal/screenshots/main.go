// Command screenshots makes the pictures of reports in README and the tutorial.
//
// usage: screenshots [-noether PROGRAM] [-o DIR] [-keep DIR]
//
// It runs the demo and the study of the tutorial, and takes pictures of their reports in headless
// Chromium. The tutorial needs the environment variable NOETHER_TESTDATA, a folder of test data.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/noether-ml/noether/internal/testdata"
)

func main() {
	program := flag.String("noether", filepath.Join("bin", "noether"), "the command noether")
	out := flag.String("o", filepath.Join("docs", "images"), "folder of the pictures")
	keep := flag.String("keep", "", "folder for the runs, which are used again (default: a temporary folder)")
	flag.Parse()
	if err := run(*program, *out, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

type shot struct {
	file          string // in the folder of pictures
	run           string // run folder
	fragment      string // of the address
	width, height int64  // of the window
	part          string // CSS selector of the part that is pictured; "": what the window shows at first
}

var shots = []shot{
	{"report.png", "demo", "", 1440, 810, ""},
	{"tutorial-findings.png", "tutorial/run", "", 1440, 700, ""},
	{"tutorial-samples.png", "tutorial/run", "", 1200, 900, "#samples"},
	// SEIS is the fourth measure.
	{"tutorial-seis.png", "tutorial/run", "", 1200, 900, "section[data-measure='3']"},
}

func run(program, out, dir string) error {
	if dir == "" {
		temporary, err := os.MkdirTemp("", "screenshots")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temporary)
		dir = temporary
	}
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	if err := command("", program, "demo", "--no-open", "-o", filepath.Join(dir, "demo")); err != nil {
		return err
	}
	if err := tutorial(program, filepath.Join(dir, "tutorial")); err != nil {
		return fmt.Errorf("the tutorial: %w", err)
	}
	return take(dir, out)
}

func command(dir, name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Dir, c.Stdout, c.Stderr = dir, os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", filepath.Base(name), args[0], err)
	}
	return nil
}

// tutorial does in a folder what docs/tutorial.md says.
func tutorial(program, dir string) error {
	data := os.Getenv(testdata.Env)
	if data == "" {
		return errors.New(testdata.Env + " is not set")
	}
	if err := writePhotos(filepath.Join(data, "cifar10"), filepath.Join(dir, "photos"), 500); err != nil {
		return err
	}
	network, err := os.ReadFile(filepath.Join(data, "models", "resnet20-cifar10.onnx"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "resnet20.onnx"), network, 0o666); err != nil {
		return err
	}
	if err := command(dir, program, "init", "resnet20.onnx", "photos", "-o", "study.yaml", "--force"); err != nil {
		return err
	}
	file := filepath.Join(dir, "study.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines { // set the mean and the standard deviation that the tutorial names
		if strings.HasPrefix(strings.TrimSpace(line), "preprocess:") {
			lines[i] = "    preprocess: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}"
		}
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o666); err != nil {
		return err
	}
	return command(dir, program, "run", "study.yaml", "-o", "run")
}

// writePhotos writes the first n images of CIFAR-10's test batch as PNG files, in a folder for each
// class.
func writePhotos(cifar, to string, n int) error {
	names, err := os.ReadFile(filepath.Join(cifar, "batches.meta.txt"))
	if err != nil {
		return err
	}
	classes := strings.Fields(string(names))
	raw, err := os.ReadFile(filepath.Join(cifar, "test_batch.bin"))
	if err != nil {
		return err
	}
	const side, plane = 32, 32 * 32 // a record is a byte of the class and the planes red, green and blue
	for i := range n {
		record := raw[i*(1+3*plane):][:1+3*plane]
		img := image.NewNRGBA(image.Rect(0, 0, side, side))
		for k := range plane {
			img.SetNRGBA(k%side, k/side, color.NRGBA{record[1+k], record[1+plane+k], record[1+2*plane+k], 255})
		}
		name := filepath.Join(to, classes[record[0]], fmt.Sprintf("%04d.png", i))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
		f, err := os.Create(name)
		if err == nil {
			err = errors.Join(png.Encode(f, img), f.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take takes the pictures.
func take(dir, out string) error {
	ctx, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU)...)
	defer stop()
	ctx, leave := chromedp.NewContext(ctx) // the browser
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil {
		return fmt.Errorf("starting Chromium: %w", err)
	}
	for _, s := range shots {
		raw, err := s.take(ctx, dir)
		if err == nil {
			err = write(filepath.Join(out, s.file), raw)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.file, err)
		}
		fmt.Println("wrote", filepath.Join(out, s.file))
	}
	return nil
}

// take returns the picture as PNG. It uses a tab of its own.
func (s shot) take(ctx context.Context, dir string) ([]byte, error) {
	ctx, leave := chromedp.NewContext(ctx)
	defer leave()
	page, err := filepath.Abs(filepath.Join(dir, s.run, "report.html"))
	if err != nil {
		return nil, err
	}
	// The bar of filters, which otherwise stays on top of the page, would cover the part.
	unpinned := chromedp.Evaluate[chromedp.Void](`document.querySelector(".filters")?.style.setProperty("position", "static")`)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(s.width, s.height), chromedp.Navigate("file://"+page+s.fragment), complete, unpinned); err != nil {
		return nil, err
	}
	if s.part == "" {
		return chromedp.Run(ctx, chromedp.CaptureScreenshot())
	}
	margin := chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector(%q).style.padding = "1rem"`, s.part))
	if err := chromedp.Do(ctx, margin); err != nil {
		return nil, err
	}
	return chromedp.Run(ctx, chromedp.Screenshot(chromedp.CSS(s.part)))
}

// write writes a PNG with the channels rounded to 5 bits, which makes the file a third as large.
func write(file string, raw []byte) error {
	picture, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	opaque := image.NewRGBA(picture.Bounds())
	draw.Draw(opaque, opaque.Bounds(), picture, image.Point{}, draw.Src)
	const levels = 31
	for i, v := range opaque.Pix {
		opaque.Pix[i] = uint8((int(v)*levels + 127) / 255 * 255 / levels)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, opaque); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o666)
}

// complete waits until all charts of a report are drawn.
func complete(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
	_, err := chromedp.Poll[bool]("document.documentElement.dataset.complete === 'true'", chromedp.WithPollingInterval(100*time.Millisecond))(ctx, target)
	return chromedp.Void{}, err
}
