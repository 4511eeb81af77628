
// In a frame of the guide: without the head around the view, and the frame as high as the view.
if (window.parent !== window) {
  document.documentElement.classList.add("framed");
  const glass = document.getElementById("glass");
  new ResizeObserver(() => window.parent.postMessage({ height: Math.ceil(glass.getBoundingClientRect().height) }, "*")).observe(glass);
}
