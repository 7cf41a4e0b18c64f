package html

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/noether-ml/noether/internal/report"
)

// fullRun returns large, a generated run of 100,000 scores, with the largest amounts that a page
// holds of all other data: histograms over units (a unit is one channel at one position), tuning
// curves (responses of a unit to transformed versions of an input), and contact sheets (images that
// show samples side by side).
func fullRun(b *testing.B) Run {
	rows, rec := large.Rows()
	r := rand.New(rand.NewPCG(5, 6))
	run := Run{Rows: rows, Record: rec}
	units := func(each func(report.Subject, float64)) error {
		for _, m := range rec.Models {
			for _, l := range m.Layers {
				for _, factor := range []string{"phase", "orientation"} {
					for range 50 {
						each(report.Subject{Of: "unit", Model: m.Name, Layer: l.Name, Data: "cifar10", Factor: factor, Measure: "seis", Statistic: "equivariance"}, r.Float64())
					}
				}
			}
		}
		return nil
	}
	var err error
	if run.Distributions, _, err = report.Distribute(units); err != nil {
		b.Fatal(err)
	}
	// 5,000 curves of 20 points, over the 12 models and 60 layers of large.
	for i := range 100_000 / 20 {
		c := report.TuningCurve{Model: rec.Models[i%12].Name, Layer: rec.Models[0].Layers[i%60].Name, Data: "cifar10", Measure: "seis", Factor: "phase", Unit: i, Sign: 1}
		for x := range 20 {
			c.Amounts, c.Values = append(c.Amounts, float64(x)), append(c.Values, r.Float64())
		}
		run.Curves = append(run.Curves, c)
	}
	for i := range 40 {
		run.Images = append(run.Images, randomImage(b, r, fmt.Sprint("sheet ", i)))
	}
	return run
}

// randomImage returns an image of random pixels, of about 200 kB.
func randomImage(b *testing.B, r *rand.Rand, title string) report.Image {
	img := image.NewNRGBA(image.Rect(0, 0, 256, 256))
	for i := range img.Pix {
		img.Pix[i] = byte(r.Uint32()) | byte(i&3/3*255) // every fourth byte, alpha, is 255
	}
	var data bytes.Buffer
	if err := png.Encode(&data, img); err != nil {
		b.Fatal(err)
	}
	return report.Image{ImageText: report.ImageText{Title: title}, Width: 256, Height: 256, PNG: data.Bytes()}
}

// BenchmarkFirstView opens reports of 100,000 scores until all that is in the window is drawn.
func BenchmarkFirstView(b *testing.B) {
	if chromiumPath() == "" {
		b.Skip("no Chromium found")
	}
	rows, rec := large.Rows()
	b.Run("scores", func(b *testing.B) { firstView(b, Run{Rows: rows, Record: rec}) })
	b.Run("everything", func(b *testing.B) { firstView(b, fullRun(b)) })
}

// firstView opens the page of a run and reports the time until all that is in the window is drawn,
// the CPU time of the main thread and the size of the page. theBrowser returns the headless
// Chromium of all tests, call runs a command of the DevTools Protocol, and until waits for a
// condition in JavaScript.
func firstView(b *testing.B, run Run) {
	text := renderRun(b, run)
	path := filepath.Join(b.TempDir(), "report.html")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	ctx, leave := chromedp.NewContext(theBrowser())
	defer leave()
	if err := chromedp.Do(ctx, call(func(ctx context.Context, p performance.EnableParams) error {
		_, err := chromedp.Call(ctx, performance.Enable, p)
		return err
	}, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})); err != nil {
		b.Fatal(err)
	}
	first, busy, n := 0.0, 0.0, 0 // sums over n views: ms until drawn, and seconds of CPU time
	for b.Loop() {
		if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900), chromedp.Navigate("file://"+path), until("document.documentElement.dataset.drawn === 'true'")); err != nil {
			b.Fatal(err)
		}
		at, err := chromedp.Run(ctx, chromedp.Evaluate[float64]("performance.getEntriesByName('first view')[0].startTime"))
		if err != nil {
			b.Fatal(err)
		}
		first, busy, n = first+at, busy+mainThreadSeconds(b, ctx), n+1
	}
	b.ReportMetric(first/float64(n), "ms/view")
	b.ReportMetric(1000*busy/float64(n), "ms-main-thread/view")
	b.ReportMetric(float64(len(text))/1e6, "MB")
}

// mainThreadSeconds returns the CPU time of the page's main thread since the page was opened.
func mainThreadSeconds(b *testing.B, ctx context.Context) float64 {
	found, err := chromedp.Run(ctx, func(ctx context.Context, _ *chromedp.Target) (performance.GetMetricsResult, error) {
		return chromedp.Call(ctx, performance.GetMetrics, cdp.Empty{})
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range found.Metrics {
		if m.Name == "TaskDuration" {
			return m.Value
		}
	}
	b.Fatal("the browser has no metric TaskDuration")
	return 0
}
