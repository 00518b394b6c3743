// Starts everything, when the other parts of the script are there.
startOverview();
startKeys();
window.addEventListener("hashchange", show);
show();
document.documentElement.dataset.ready = "true";
