// Gives each live part the height that it asks for.
window.addEventListener("message", ({ source, data }) => {
  const frame = [...document.querySelectorAll(".live iframe")].find((one) => one.contentWindow === source);
  if (frame && Number.isFinite(data?.height)) frame.style.height = `${Math.min(Math.max(data.height, 200), 880) + 2}px`;
});
